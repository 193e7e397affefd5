"""Tables at a terminal, by rich, which is loaded for nobody else."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from husk.cli.kit.fitting import fitted
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
_BETWEEN = 3


def show_rich(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    room = Console().width
    found = table(titles, rows, room)
    # A name that is wider than the terminal runs over: it can be copied.
    width = sum((column.width or 0) + _BETWEEN for column in found.columns)
    console = Console(highlight=False, width=max(room, width))
    console.print(found)


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], room: int = 0) -> Table:
    """The same columns as in a pipe, in colours, as far as they have room: each row is one line."""
    room = room or Console().width
    cells = [[in_line(cell) for cell in row] for row in rows]
    widths = [max(cell_len(title), *(cell_len(row[place]) for row in cells), 1) for place, title in enumerate(titles)]
    shown = fitted(titles, widths, room, _BETWEEN)
    found = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", padding=(0, 1))
    for place, width in shown:
        found.add_column(titles[place], no_wrap=True, overflow="ellipsis", width=width)
    for row in cells:
        found.add_row(*(coloured(row[place]) for place, _ in shown))
    return found


def live_table() -> Live:
    """A place for tables, each in that of the one before."""
    return Live(auto_refresh=False)


def coloured(cell: str) -> Text:
    style = next((style for start, style in _COLOURS.items() if cell.startswith(start)), "")
    if "(unhealthy)" in cell:
        style = "red"
    return Text(in_line(cell), style=style)
