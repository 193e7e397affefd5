"""Figures as Markdown."""

from bench.figures import Collection, Machine, Report
from bench.tables import page, table

MACHINE = Machine("2026-11-17 09:00 UTC", 2, 4096, "6.1", "3.11.2", "abc1234")


def report() -> Report:
    found = Report("exec", "Time of an exec", engines={"husk": "husk 0.1", "podman": "podman 5.8"})
    found.add("husk", "exec", "ms", [10.0, 20.0, 30.0])
    found.add("podman", "exec", "ms", [40.0])
    found.add("podman", "of a | pipe", "s", [0.5], of="3 lines")
    found.load, found.seconds = [0.5, 1.25], 31.4
    return found


def test_a_table_has_a_column_for_each_engine_and_tells_what_is_missing() -> None:
    assert table(report()).splitlines() == [
        "| what | husk 0.1 | podman 5.8 |",
        "| --- | --- | --- |",
        "| exec | 20 ms (10) | 40 ms 2.0x |",
        "| of a \\| pipe, 3 lines | - | 0.50 s |",
    ]


def test_a_page_tells_where_it_was_measured_and_what_failed() -> None:
    found = report()
    found.missing = ["dockerd-new"]
    text = page(Collection(MACHINE, [found], {"api": "there is no h2load"}, quick=True))
    assert "commit abc1234, 2 processors, 4,096 MiB" in text and "A quick run" in text
    assert "## Time of an exec\n\n`python -m bench.exec`, 31 s, load average 0.5 to 1.2." in text
    assert "Not on this machine: dockerd-new." in text
    assert "- `bench.api`: there is no h2load" in text
