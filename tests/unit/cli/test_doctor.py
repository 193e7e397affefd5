"""`husk doctor` tells what the host lacks with the cure, and its exit status whether containers can run."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from husk.cli import checks, cures
from husk.cli.checks import Finding, Fix
from husk.cli.commands import husk
from husk.errors import HuskError
from husk.kernel import cgroups

GOOD = Finding("root", "ok", "fine")
POOR = Finding("cgroups", "poor", "hugetlb", "mount it", Fix("controller", "hugetlb"))
BAD = Finding("conmon", "bad", "missing", "apt-get install conmon", Fix("package", "conmon"))


def doctor(*arguments: str):
    return CliRunner().invoke(husk, ["doctor", *arguments], catch_exceptions=False)


def status(effective: int) -> str:
    return f"Name:\tx\nCapEff:\t{effective:016x}\n"


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


def test_a_cure_that_fails_is_told(monkeypatch):
    def refuse(controller: str) -> None:
        raise HuskError(f"cannot mount {controller}")

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(cgroups, "mount_v1", refuse)
    assert cures.apply([Fix("controller", "hugetlb")]) == ["cannot mount hugetlb"]


def test_cures_need_root(monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert cures.apply([Fix("package", "crun")]) == ["cures need root: run it again with sudo"]


def test_without_root_the_doctor_says_so(monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    first, *_ = checks.examine(Path("/var/lib/husk"))
    assert (first.name, first.verdict) == ("root", "bad")


def test_missing_rights_are_named():
    everything = (1 << 41) - 1
    assert [f.verdict for f in checks._rights(status(everything))] == ["ok"]
    without_resource = list(checks._rights(status(everything & ~(1 << 24))))
    assert without_resource[0].verdict == "poor" and "CAP_SYS_RESOURCE" in without_resource[0].detail
    without_admin = list(checks._rights(status(everything & ~(1 << 21))))
    assert without_admin[0].verdict == "bad" and "CAP_SYS_ADMIN" in without_admin[0].detail


def test_a_hybrid_host_with_controllers_in_v2_has_a_cure_that_can_be_applied(monkeypatch):
    monkeypatch.setattr(cgroups, "hybrid_blocker", lambda: ("hugetlb",))
    assert Fix("controller", "hugetlb") in [finding.fix for finding in checks._cgroups()]


@pytest.mark.parametrize(
    ("installed", "verdicts"),
    [({"crun", "runc"}, ["ok"]), ({"runc"}, ["ok", "poor"]), (set(), ["bad"])],
)
def test_one_runtime_is_enough_and_crun_is_better(installed, verdicts):
    found = checks._runtimes(lambda name: f"/usr/bin/{name}" if name in installed else None)
    assert [finding.verdict for finding in found] == verdicts


def test_missing_programs_are_packages_to_install():
    fixes = [finding.fix for finding in checks._helpers(lambda name: None)]
    assert fixes == [Fix("package", name) for name in ("conmon", "tini", "busybox-static")]


def test_a_script_is_no_static_program(tmp_path):
    script = tmp_path / "busybox"
    script.write_text("#!/bin/sh\n")
    assert not checks._is_static(script)
