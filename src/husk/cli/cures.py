"""Cures of findings, for `husk doctor --fix`: it installs packages, and mounts a cgroup controller as v1."""

import asyncio
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence

from husk.cli import packages
from husk.cli.checks import Fix
from husk.cli.packages import Family
from husk.errors import HuskError
from husk.kernel import cgroups, process
from husk.kernel.process import Completed

_TIMEOUT = 600.0
# What programs that install packages must not do: ask.
_ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive"}


def apply(fixes: Iterable[Fix]) -> list[str]:
    """Apply the cures; what went wrong, one sentence each."""
    wanted = list(fixes)
    problems = []
    if os.geteuid() != 0:
        return ["cures need root: run it again with sudo"]
    for fix in wanted:
        if fix.kind == "controller":
            try:
                cgroups.mount_v1(fix.value)
            except HuskError as error:
                problems.append(error.message)
    needs = sorted({fix.value for fix in wanted if fix.kind == "package"})
    return [*problems, *_install_all(needs, packages.here())] if needs else problems


def _install_all(needs: Sequence[str], family: Family | None) -> Iterator[str]:
    if family is None:
        yield f"this distribution is not known, of /etc/os-release: install by hand {' '.join(needs)}"
        return
    program = shutil.which(family.program)
    if program is None:
        yield f"this host has no {family.program}: install by hand {' '.join(needs)}"
        return
    found = {need: packages.package(need, family) for need in needs}
    for need in (need for need, name in found.items() if name is None):
        yield packages.cure(need, family)
    if names := [name for name in found.values() if name is not None]:
        yield from asyncio.run(_install(program, family, names))


async def _install(program: str, family: Family, names: Sequence[str]) -> list[str]:
    """All at once; where that fails one by one, so that the lack of one keeps no other away."""
    if (await _tell(program, family.install, names)).returncode == 0:
        return []
    if family.refresh:
        # The lists of a fresh machine are empty or old.
        await _tell(program, family.refresh)
    problems = []
    for name in names:
        done = await _tell(program, family.install, [name])
        if done.returncode != 0:
            lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
            problems.append(f"{family.program} could not install {name}: {lines[-1] if lines else 'no message'}")
    return problems


async def _tell(program: str, words: Sequence[str], names: Sequence[str] = ()) -> Completed:
    return await process.run([program, *words[1:], *names], env=_ENVIRONMENT, timeout=_TIMEOUT)
