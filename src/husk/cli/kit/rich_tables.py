"""Tables at a terminal, by rich, which is loaded for nobody else."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from husk.cli.kit.words import in_line

_COLOURS = {
    "Up": "green",
    "Exited (0)": "dim",
    "Exited": "red",
    "Created": "yellow",
    "Restarting": "yellow",
    "Dead": "red",
    "<none>": "dim",
}
# Columns that are never cut: a part of one is of no use.
_WHOLE = ("CONTAINER ID", "IMAGE ID", "ID", "SIZE", "CPU %", "MEM %", "PIDS")


def show_rich(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    Console(highlight=False).print(table(titles, rows))


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """The same columns as in a pipe, in colours, cut to the width of the terminal."""
    found = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", padding=(0, 1))
    for title in titles:
        found.add_column(title, no_wrap=title in _WHOLE, overflow="fold")
    for row in rows:
        found.add_row(*(coloured(cell) for cell in row))
    return found


def live_table() -> Live:
    """A place for tables, each in that of the one before."""
    return Live(auto_refresh=False)


def coloured(cell: str) -> Text:
    style = next((style for start, style in _COLOURS.items() if cell.startswith(start)), "")
    if "(unhealthy)" in cell:
        style = "red"
    return Text(in_line(cell), style=style)
