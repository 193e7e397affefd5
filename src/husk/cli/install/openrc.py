"""OpenRC of a host (Alpine, Gentoo): is it there, does it run, and what it is told."""

import asyncio
import shutil
from pathlib import Path

from husk.cli.install.record import inside
from husk.errors import SystemFault
from husk.kernel import process

# What puts a service into the runlevel that a host boots into: a link, as `rc-update add` makes it.
LINK = "/etc/runlevels/default/husk"
_PLACES = ("/sbin/openrc-run", "/usr/sbin/openrc-run")
_PROGRAMS = "/sbin:/usr/sbin:/bin:/usr/bin"
# A daemon with many containers takes its time to start.
_PATIENCE = 300.0


def present(root: Path) -> bool:
    return any(inside(root, place).exists() for place in _PLACES)


def running(root: Path) -> bool:
    """Return True if OpenRC has booted this very host."""
    return root == Path("/") and Path("/run/openrc/softlevel").exists()


def start(programs: str = _PROGRAMS) -> None:
    """From now on; a daemon that runs already is started anew. SystemFault says why not."""
    _tell(["restart"], programs)


def stop(programs: str = _PROGRAMS) -> None:
    """No longer; containers run on."""
    _tell(["stop"], programs)


def _tell(words: list[str], programs: str) -> None:
    program = shutil.which("rc-service", path=programs)
    if program is None:
        raise SystemFault(f"there is no rc-service here for: rc-service husk {' '.join(words)}")
    done = asyncio.run(process.run([program, "husk", *words], timeout=_PATIENCE))
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise SystemFault(f"rc-service husk {' '.join(words)} failed: {said or f'status {done.returncode}'}")
