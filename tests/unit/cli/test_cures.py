"""Cures of `husk doctor --fix`, and its words when it cannot."""

import os
import shutil
from collections.abc import Sequence
from typing import Any

import pytest

from husk.cli import cures, packages
from husk.cli.checks import Fix
from husk.cli.packages import family_of
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


class Host:
    """A distribution, and what its program was told; packages in `old` need new lists, those in `none` are none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.told: list[list[str]] = []
        self.old: set[str] = set()
        self.none: set[str] = set()
        self._monkeypatch = monkeypatch

    def of(self, release: str) -> "Host":
        self._monkeypatch.setattr(packages, "here", lambda: family_of(release))
        return self

    async def run(self, command: Sequence[str], **_: Any) -> Completed:
        self.told.append([os.path.basename(command[0]), *command[1:]])
        if {"update", "refresh"} & set(command):
            self.old.clear()
        fails = (self.none | self.old) & set(command)
        return Completed(100 if fails else 0, b"", b"Reading...\nE: no such package\n" if fails else b"")


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host(monkeypatch).of("ID=debian")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(process, "run", made.run)
    return made


def fixes(*needs: str) -> list[Fix]:
    return [Fix("package", need) for need in needs]


@pytest.mark.parametrize(
    ("release", "line"),
    [
        ("ID=debian", "apt-get install -y -q --no-install-recommends crun tini"),
        ("ID=ubuntu\nID_LIKE=debian", "apt-get install -y -q --no-install-recommends crun tini"),
        ("ID=fedora", "dnf install -y -q --setopt=install_weak_deps=False crun tini-static"),
        ('ID="opensuse-leap"', "zypper --non-interactive install --no-recommends crun catatonit"),
        ("ID=arch", "pacman -S --needed --noconfirm crun catatonit"),
        ("ID=alpine", "apk add -q crun tini-static"),
    ],
)
def test_packages_are_installed_at_once_by_what_the_distribution_has(host: Host, release: str, line: str) -> None:
    host.of(release)
    assert cures.apply(fixes("init", "crun", "init")) == []
    assert [" ".join(words) for words in host.told] == [line]


def test_a_fresh_machine_gets_its_lists_first(host: Host) -> None:
    host.old = {"crun"}
    assert cures.apply(fixes("crun")) == []
    assert [words[1] for words in host.told] == ["install", "update", "install"]


def test_arch_gets_no_new_lists_beside_old_packages(host: Host) -> None:
    host.of("ID=arch").none = {"crun"}
    assert cures.apply(fixes("crun")) == ["pacman could not install crun: E: no such package"]
    assert all("-Sy" not in words for words in host.told)


def test_one_that_is_not_to_be_had_keeps_no_other_away(host: Host) -> None:
    host.none = {"conmon"}
    assert cures.apply(fixes("conmon", "crun")) == ["apt-get could not install conmon: E: no such package"]
    assert host.told[-1][-1] == "crun"


def test_a_host_without_its_program(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert cures.apply(fixes("crun")) == ["this host has no apt-get: install by hand crun"]


def test_a_distribution_that_is_not_known(host: Host) -> None:
    host.of("ID=plan9")
    (problem,) = cures.apply(fixes("crun", "init"))
    assert problem.endswith("install by hand crun init") and host.told == []


def test_what_has_no_package_is_told(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "package", lambda need, family: None if need == "init" else need)
    assert cures.apply(fixes("init", "crun")) == ["install init by hand: debian has no package of it"]
    assert host.told[-1][-1] == "crun"
