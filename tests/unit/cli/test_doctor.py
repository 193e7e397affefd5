"""`husk doctor` tells what the host lacks with the cure, and its exit status whether containers can run."""

from collections.abc import Iterable

import pytest

from husk.cli.checks import Finding, Fix
from husk.cli.doctor import report

GOOD = Finding("root", "ok", "fine")
POOR = Finding("cgroups", "poor", "hugetlb", "mount it", Fix("controller", "hugetlb"))
BAD = Finding("conmon", "bad", "missing", "apt-get install conmon", Fix("package", "conmon"))


@pytest.mark.parametrize(("findings", "healthy"), [([GOOD], True), ([GOOD, POOR], True), ([GOOD, POOR, BAD], False)])
def test_only_what_is_bad_keeps_containers_from_running(findings: list[Finding], healthy: bool) -> None:
    assert report(lambda: findings) is healthy


def test_there_is_one_line_per_finding_with_the_cure(capsys: pytest.CaptureFixture[str]) -> None:
    report(lambda: [GOOD, BAD])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["ok", "root", "fine"]
    assert lines[1].endswith("missing. Cure: apt-get install conmon")


def test_quiet_prints_only_what_keeps_containers_from_running(capsys: pytest.CaptureFixture[str]) -> None:
    report(lambda: [GOOD, POOR, BAD], quiet=True)
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["conmon"]


def test_fix_applies_the_cures_and_looks_again(capsys: pytest.CaptureFixture[str]) -> None:
    answers = [[POOR, BAD], [GOOD]]
    applied: list[Fix] = []

    def mend(fixes: Iterable[Fix]) -> list[str]:
        applied.extend(fixes)
        return ["one cannot be had"]

    assert report(lambda: answers.pop(0), mend)
    assert applied == [POOR.fix, BAD.fix]
    assert capsys.readouterr().err.splitlines()[-1] == "husk doctor: one cannot be had"


def test_what_a_container_said_is_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    """The output of a health check is its own."""
    said = "unhealthy: \x1b[2J\x9b1A\r\nok    everything is fine"
    report(lambda: [Finding("health", "bad", said, said)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and lines[0].count("\\x1b[2J\\x9b1A\\x0d\\nok") == 2
