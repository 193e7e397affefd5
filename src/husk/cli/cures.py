"""Cures of findings, for `husk doctor --fix`: it installs packages, and mounts a cgroup controller as v1."""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from husk.cli import packages
from husk.cli.checks import Fix
from husk.cli.packages import Family
from husk.errors import HuskError
from husk.kernel import cgroups, process
from husk.kernel.process import Completed

_TIMEOUT = 600.0
# What programs that install packages must not do: ask.
_ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive"}


class Runner(Protocol):
    """A way to run a program to its end."""

    def __call__(self, argv: Sequence[str], /, *, env: Mapping[str, str], timeout: float) -> Awaitable[Completed]: ...


@dataclass(frozen=True)
class HostTools:
    """The means to change a host of this family of distributions."""

    root: bool
    family: Family | None
    table: Path = packages.TABLE
    find: Callable[[str], str | None] = shutil.which
    run: Runner = process.run
    mount_v1: Callable[[str], None] = cgroups.mount_v1


def apply(fixes: Iterable[Fix], tools: HostTools | None = None) -> list[str]:
    """Apply the cures, to this host where no tools are given; what went wrong, one sentence each."""
    tools = tools or HostTools(os.geteuid() == 0, packages.here())
    wanted = list(fixes)
    problems = []
    if not tools.root:
        return ["cures need root: run it again with sudo"]
    for fix in wanted:
        if fix.kind == "controller":
            try:
                tools.mount_v1(fix.value)
            except HuskError as error:
                problems.append(error.message)
    needs = sorted({fix.value for fix in wanted if fix.kind == "package"})
    return [*problems, *_install_all(needs, tools)] if needs else problems


def _install_all(needs: Sequence[str], tools: HostTools) -> Iterator[str]:
    family = tools.family
    if family is None:
        yield f"this distribution is not known, of /etc/os-release: install by hand {' '.join(needs)}"
        return
    program = tools.find(family.program)
    if program is None:
        yield f"this host has no {family.program}: install by hand {' '.join(needs)}"
        return
    found = {need: packages.package(need, family, tools.table) for need in needs}
    for need in (need for need, name in found.items() if name is None):
        yield packages.cure(need, family, tools.table)
    if names := [name for name in found.values() if name is not None]:
        yield from asyncio.run(_install(tools, program, family, names))


async def _install(tools: HostTools, program: str, family: Family, names: Sequence[str]) -> list[str]:
    """All at once; where that fails one by one, so that the lack of one keeps no other away."""
    if (await _tell(tools, program, family.install, names)).returncode == 0:
        return []
    if family.refresh:
        # The lists of a fresh machine are empty or old.
        await _tell(tools, program, family.refresh)
    problems = []
    for name in names:
        done = await _tell(tools, program, family.install, [name])
        if done.returncode != 0:
            lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
            problems.append(f"{family.program} could not install {name}: {lines[-1] if lines else 'no message'}")
    return problems


async def _tell(tools: HostTools, program: str, words: Sequence[str], names: Sequence[str] = ()) -> Completed:
    return await tools.run([program, *words[1:], *names], env=_ENVIRONMENT, timeout=_TIMEOUT)
