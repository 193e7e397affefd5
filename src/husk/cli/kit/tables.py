"""Rows of answers: a table for people at a terminal, docker's columns for programs, or a template of the caller's."""

from collections.abc import Mapping, Sequence

from husk.cli.kit.late import late
from husk.cli.kit.words import in_line
from husk.cli.kit.writing import at_terminal, say

# Templates are dear to load, and most tables have none.
_template = late("husk.cli.kit.templates:FormatTemplate")
_NARROWEST = 10
_BETWEEN = 3
Row = Mapping[str, str]


def show(headings: Mapping[str, str], fields: Sequence[str], rows: Sequence[Row], template: str | None = None) -> None:
    """Print rows: `headings` has the title of every field that there is, `fields` are those of the plain table."""
    if template in (None, "", "table"):
        if at_terminal():
            # A door: rich, which only a terminal wants.
            from husk.cli.kit.rich_tables import show_rich

            show_rich([headings[field] for field in fields], [[row[field] for field in fields] for row in rows])
        else:
            print_plain([[headings[field] for field in fields], *([row[field] for field in fields] for row in rows)])
        return

    assert template is not None
    if template.startswith("table "):
        shape = _template(template.removeprefix("table ").replace("\\t", "\t").replace("\\n", "\n"))
        print_plain([line.split("\t") for line in (shape.fill(headings), *(shape.fill(row) for row in rows))])
    else:
        shape = _template("{{json .}}" if template == "json" else template.replace("\\t", "\t").replace("\\n", "\n"))
        for row in rows:
            say(shape.fill(row), exact=True)


def print_plain(lines: Sequence[Sequence[str]], narrowest: int = _NARROWEST) -> None:
    for line in plain(lines, narrowest):
        say(line)


def plain(lines: Sequence[Sequence[str]], narrowest: int = _NARROWEST) -> list[str]:
    """Columns as docker's client aligns them: so wide at least, three apart, the last as it is."""
    lines = [[in_line(cell) for cell in line] for line in lines]
    columns = max((len(line) for line in lines), default=0)
    widths = [
        max(narrowest, *(len(line[place]) + _BETWEEN for line in lines if len(line) > place + 1), 0)
        for place in range(columns)
    ]
    return [
        "".join(f"{cell:{width}}" for cell, width in zip(line[:-1], widths, strict=False)) + line[-1] for line in lines
    ]
