from husk.cli.kit.tables import plain, show
from tests.support.terminal import stdout_terminal

HEADINGS = {"ID": "CONTAINER ID", "Names": "NAMES"}
ROWS = [{"ID": "0123456789ab", "Names": "web"}, {"ID": "1", "Names": ""}]


def test_columns_are_aligned_as_docker_aligns_them():
    assert plain([["CONTAINER ID", "X", "NAMES"], ["1", "", "web"]]) == [
        "CONTAINER ID   X         NAMES",
        "1                        web",
    ]
    assert plain([]) == []


def test_templates_of_the_caller(capfd):
    show(HEADINGS, ("ID", "Names"), ROWS)
    show(HEADINGS, ("ID", "Names"), ROWS, "table {{.Names}}\\t{{.ID}}")
    show(HEADINGS, ("ID", "Names"), ROWS, "{{.ID}}-{{.Names}}")
    show(HEADINGS, ("ID", "Names"), ROWS[:1], "json")
    assert capfd.readouterr().out.splitlines() == [
        "CONTAINER ID   NAMES",
        "0123456789ab   web",
        "1              ",
        "NAMES     CONTAINER ID",
        "web       0123456789ab",
        "          1",
        "0123456789ab-web",
        "1-",
        '{"ID":"0123456789ab","Names":"web"}',
    ]


def test_a_terminal_gets_a_table_of_rich(capfd):
    with stdout_terminal():
        show(HEADINGS, ("ID", "Names"), ROWS)
    told = capfd.readouterr().out
    assert "CONTAINER ID" in told and "web" in told and "─" in told
