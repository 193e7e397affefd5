"""Cures of `husk doctor --fix`, and its words when it cannot."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from husk.cli import cures
from husk.cli.checks import Fix
from husk.cli.cures import HostTools
from husk.cli.packages import family_of
from husk.errors import HuskError
from husk.kernel.process import Completed


def test_a_cure_that_fails_is_told() -> None:
    def refuse(controller: str) -> None:
        raise HuskError(f"cannot mount {controller}")

    tools = HostTools(True, None, mount_v1=refuse)
    assert cures.apply([Fix("controller", "hugetlb")], tools) == ["cannot mount hugetlb"]


def test_cures_need_root() -> None:
    tools = HostTools(False, family_of("ID=debian"))
    assert cures.apply([Fix("package", "crun")], tools) == ["cures need root: run it again with sudo"]


@dataclass
class Distribution:
    """A distribution, and what its program was told; packages in `old` need new lists, those in `none` are none."""

    release: str = "ID=debian"
    told: list[list[str]] = field(default_factory=list)
    old: set[str] = field(default_factory=set)
    none: set[str] = field(default_factory=set)

    async def _run(self, command: Sequence[str], **_: Any) -> Completed:
        self.told.append([os.path.basename(command[0]), *command[1:]])
        if {"update", "refresh"} & set(command):
            self.old.clear()
        fails = (self.none | self.old) & set(command)
        return Completed(100 if fails else 0, b"", b"Reading...\nE: no such package\n" if fails else b"")

    @property
    def tools(self) -> HostTools:
        return HostTools(True, family_of(self.release), find="/usr/bin/{}".format, run=self._run)

    def apply(self, *needs: str) -> list[str]:
        return cures.apply(fixes(*needs), self.tools)


@pytest.fixture
def host() -> Distribution:
    return Distribution()


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
def test_packages_are_installed_at_once_by_what_the_distribution_has(
    host: Distribution, release: str, line: str
) -> None:
    host.release = release
    assert host.apply("init", "crun", "init") == []
    assert [" ".join(words) for words in host.told] == [line]


def test_a_fresh_machine_gets_its_lists_first(host: Distribution) -> None:
    host.old = {"crun"}
    assert host.apply("crun") == []
    assert [words[1] for words in host.told] == ["install", "update", "install"]


def test_arch_gets_no_new_lists_beside_old_packages(host: Distribution) -> None:
    host.release, host.none = "ID=arch", {"crun"}
    assert host.apply("crun") == ["pacman could not install crun: E: no such package"]
    assert all("-Sy" not in words for words in host.told)


def test_one_that_is_not_to_be_had_keeps_no_other_away(host: Distribution) -> None:
    host.none = {"conmon"}
    assert host.apply("conmon", "crun") == ["apt-get could not install conmon: E: no such package"]
    assert host.told[-1][-1] == "crun"


def test_a_host_without_its_program(host: Distribution) -> None:
    tools = replace(host.tools, find=lambda name: None)
    assert cures.apply(fixes("crun"), tools) == ["this host has no apt-get: install by hand crun"]


def test_a_distribution_that_is_not_known(host: Distribution) -> None:
    host.release = "ID=plan9"
    (problem,) = host.apply("crun", "init")
    assert problem.endswith("install by hand crun init") and host.told == []


def test_what_has_no_package_is_told(host: Distribution, tmp_path: Path) -> None:
    (tmp_path / "table").write_text("crun crun crun crun crun crun\ninit - - - - -\n")
    tools = replace(host.tools, table=tmp_path / "table")
    assert cures.apply(fixes("init", "crun"), tools) == ["install init by hand: debian has no package of it"]
    assert host.told[-1][-1] == "crun"
