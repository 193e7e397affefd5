"""Progress of a migration: lines in a pipe, a bar at a terminal."""

import pytest

from husk.cli.migrate.report import MigrationReport
from tests.support.terminal import stdout_terminal


def work(told: MigrationReport) -> None:
    with told:
        told.begin("image a", 10)
        told.advance(5)
        told.done("image a")
        told.skipped("image b", "is here")
        told.begin("image c")
        told.failed("image c", "no")


def test_in_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    told = MigrationReport()
    work(told)
    assert capfd.readouterr().out == "image a\nimage b: is here\nimage c: FAILED: no\n" and told.failures == 1


def test_at_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with stdout_terminal():
        work(MigrationReport())
    assert "image b: is here" in capfd.readouterr().out
