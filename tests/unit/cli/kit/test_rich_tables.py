"""Tables at a terminal: a line for each row, whatever its width."""

import re

import pytest

from husk.cli.kit.rich_tables import show_rich

TITLES = ["CONTAINER ID", "IMAGE", "COMMAND", "STATUS", "PORTS", "NAMES"]
NAME = "a-name-that-is-whole"
ROW = ["0123456789ab", "app:1", '"sh -c a lot of it"', "Up 2 minutes", "0.0.0.0:8000->80/tcp, [::]:8000->80/tcp", NAME]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_each_row_is_one_line_with_its_id_and_name(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    show_rich(TITLES, [ROW, ROW])
    told = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    heading, _, *rows = told.splitlines()
    assert len(rows) == 2 and heading.startswith("CONTAINER ID")
    assert all(row.startswith("0123456789ab") and row.rstrip().endswith(NAME) for row in rows)
    assert width < 80 or all(len(line.rstrip()) <= width for line in (heading, *rows))
    assert (ROW[4] in told) == (width == 200)
