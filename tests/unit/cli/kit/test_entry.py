import click
import pytest

from husk.cli.kit.command import HuskCommand
from husk.cli.kit.entry import enter

OURS = ". See 'husk ours --help'"


@click.group()
def root() -> None:
    """All."""


@root.command(cls=HuskCommand)
@click.option("--number", type=int)
@click.argument("name")
def ours(number: int, name: str) -> None:
    if name == "leave":
        raise KeyboardInterrupt
    if name == "fail":
        raise click.ClickException("it cannot be done")


@root.command()
def other() -> None:
    """Reads its line as click does."""


@root.command("serve")
def serve() -> None:
    """The daemon's own flags."""


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        (["ours", "x"], 0, ""),
        (["ours", "--numbr=1", "x"], 125, "husk ours: unknown flag: --numbr (did you mean --number?)" + OURS),
        (["ours", "-x"], 125, "husk ours: unknown shorthand flag: 'x' in -x" + OURS),
        (
            ["ours", "--number=x", "y"],
            125,
            "husk ours: invalid value for '--number': 'x' is not a valid integer" + OURS,
        ),
        (["ours"], 1, "husk ours: missing argument 'NAME'" + OURS),
        (["nosuch"], 1, "husk: unknown command: 'nosuch'. See 'husk --help'"),
        (["other", "--nosuch"], 125, "husk other: unknown flag: --nosuch. See 'husk other --help'"),
        (["serve", "--nosuch"], 2, "husk serve: unknown flag: --nosuch. See 'husk serve --help'"),
        (["ours", "leave"], 130, ""),
        (["ours", "fail"], 1, "husk: it cannot be done"),
    ],
)
def test_complaints_are_one_line(line, code, told, capfd):
    assert enter(root, "husk", line) == code
    assert capfd.readouterr().err.rstrip("\n") == told
