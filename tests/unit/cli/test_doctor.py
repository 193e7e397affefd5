"""`husk doctor` tells what the host lacks with the cure, and its exit status whether containers can run."""

import pytest
from click.testing import CliRunner

from husk.cli import checks, cures
from husk.cli.checks import Finding, Fix
from husk.cli.commands import husk

GOOD = Finding("root", "ok", "fine")
POOR = Finding("cgroups", "poor", "hugetlb", "mount it", Fix("controller", "hugetlb"))
BAD = Finding("conmon", "bad", "missing", "apt-get install conmon", Fix("package", "conmon"))


def doctor(*arguments: str):
    return CliRunner().invoke(husk, ["doctor", *arguments], catch_exceptions=False)


@pytest.mark.parametrize(("findings", "code"), [([GOOD], 0), ([GOOD, POOR], 0), ([GOOD, POOR, BAD], 1)])
def test_the_exit_status_says_whether_containers_can_run(monkeypatch, findings, code):
    monkeypatch.setattr(checks, "examine", lambda root: findings)
    assert doctor().exit_code == code


def test_there_is_one_line_per_finding_with_the_cure(monkeypatch):
    monkeypatch.setattr(checks, "examine", lambda root: [GOOD, BAD])
    lines = doctor().output.splitlines()
    assert lines[0].split() == ["ok", "root", "fine"]
    assert lines[1].endswith("missing. Cure: apt-get install conmon")


def test_quiet_prints_only_what_keeps_containers_from_running(monkeypatch):
    monkeypatch.setattr(checks, "examine", lambda root: [GOOD, POOR, BAD])
    assert [line.split()[1] for line in doctor("--quiet").output.splitlines()] == ["conmon"]


def test_fix_applies_the_cures_and_looks_again(monkeypatch):
    answers = [[POOR, BAD], [GOOD]]
    applied: list[Fix] = []

    def apply(fixes):
        applied.extend(fixes)
        return []

    monkeypatch.setattr(checks, "examine", lambda root: answers.pop(0))
    monkeypatch.setattr(cures, "apply", apply)
    assert doctor("--fix").exit_code == 0
    assert applied == [POOR.fix, BAD.fix]


def test_what_a_container_said_is_not_obeyed(monkeypatch):
    """The output of a health check is its own."""
    said = "unhealthy: \x1b[2J\x9b1A\r\nok    everything is fine"
    monkeypatch.setattr(checks, "examine", lambda root: [Finding("health", "bad", said, said)])
    lines = doctor().output.splitlines()
    assert len(lines) == 2 and lines[0].count("\\x1b[2J\\x9b1A\\x0d\\nok") == 2
