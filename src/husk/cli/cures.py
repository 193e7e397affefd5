"""What can `husk doctor --fix` do about a finding? Install Debian packages, and mount a cgroup controller as v1."""

import asyncio
import os
import shutil
from collections.abc import Iterable, Sequence

from husk.cli.checks import Fix
from husk.errors import HuskError
from husk.kernel import cgroups, process

_APT_TIMEOUT = 600.0


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
    packages = sorted({fix.value for fix in wanted if fix.kind == "package"})
    if packages:
        try:
            asyncio.run(_install(packages))
        except HuskError as error:
            problems.append(error.message)
    return problems


async def _install(packages: Sequence[str]) -> None:
    apt = shutil.which("apt-get")
    if apt is None:
        raise HuskError(f"this host has no apt: install by hand {' '.join(packages)}")
    install = [apt, "install", "-y", "-q", "--no-install-recommends", *packages]
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    done = await process.run(install, env=environment, timeout=_APT_TIMEOUT)
    if done.returncode != 0:
        # The lists of a fresh machine are empty or old.
        await process.run([apt, "update", "-q"], env=environment, timeout=_APT_TIMEOUT)
        done = await process.run(install, env=environment, timeout=_APT_TIMEOUT)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise HuskError(f"apt-get could not install {' '.join(packages)}: {lines[-1] if lines else 'no message'}")
