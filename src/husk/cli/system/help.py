"""`husk help`: the same as `--help` behind a command."""

import click

from husk.cli.kit.command import HuskCommand


@click.command("help", cls=HuskCommand, own_words=True)
@click.argument("words", nargs=-1, metavar="[COMMAND...]")
@click.pass_context
def help_(context: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of the command that is named."""
    at = context.find_root()
    for word in words:
        group = at.command
        assert isinstance(group, click.Group)
        name, command, _ = group.resolve_command(at, [word])
        assert command is not None
        at = click.Context(command, info_name=name, parent=at)
        if not isinstance(command, click.Group):
            break
    click.echo(at.get_help())
