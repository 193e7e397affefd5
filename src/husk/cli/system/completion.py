"""`husk completion`: what a shell has to read to complete our lines."""

import click
from click.shell_completion import get_completion_class

from husk.cli.kit.command import Command
from husk.cli.kit.writing import say


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completions for a shell: eval "$(husk completion bash)"."""
    found = get_completion_class(shell)
    assert found is not None
    say(found(context.find_root().command, {}, "husk", "_HUSK_COMPLETE").source())
