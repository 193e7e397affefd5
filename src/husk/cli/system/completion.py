"""`husk completion`: what a shell has to read to complete our lines."""

import click

from husk.cli.kit.command import HuskCommand
from husk.cli.kit.shells import script
from husk.cli.kit.writing import say


@click.command(cls=HuskCommand)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completions for a shell: eval "$(husk completion bash)"."""
    say(script(context.find_root().command, shell))
