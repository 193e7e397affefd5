"""What `husk doctor --fix` does, and what it says when it cannot."""

import shutil
from collections.abc import Sequence
from typing import Any

import pytest

from husk.cli import cures
from husk.cli.checks import Fix
from husk.errors import HuskError
from husk.kernel import cgroups, process
from husk.kernel.process import Completed


def test_a_cure_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(controller: str) -> None:
        raise HuskError(f"cannot mount {controller}")

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(cgroups, "mount_v1", refuse)
    assert cures.apply([Fix("controller", "hugetlb")]) == ["cannot mount hugetlb"]


def test_cures_need_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert cures.apply([Fix("package", "crun")]) == ["cures need root: run it again with sudo"]


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What apt-get was told; it fails for packages named `old` until its lists are new, and for `none` always."""
    told: list[list[str]] = []

    async def run(command: Sequence[str], **_: Any) -> Completed:
        told.append(list(command[1:]))
        fresh = any(line[0] == "update" for line in told)
        fails = "none" in command or ("old" in command and not fresh)
        return Completed(100 if fails else 0, b"", b"Reading...\nE: Unable to locate package\n" if fails else b"")

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(process, "run", run)
    return told


def test_packages_are_installed_at_once(apt: list[list[str]]) -> None:
    assert cures.apply([Fix("package", "tini"), Fix("package", "crun"), Fix("package", "tini")]) == []
    assert [line[-2:] for line in apt] == [["crun", "tini"]]


def test_a_fresh_machine_gets_its_lists_first(apt: list[list[str]]) -> None:
    assert cures.apply([Fix("package", "old")]) == []
    assert [line[0] for line in apt] == ["install", "update", "install"]


def test_what_apt_says_is_told(apt: list[list[str]]) -> None:
    assert cures.apply([Fix("package", "none")]) == ["apt-get could not install none: E: Unable to locate package"]


def test_a_host_without_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert cures.apply([Fix("package", "crun")]) == ["this host has no apt: install by hand crun"]
