"""systemd of a host: is it there, does it run, and what it is told."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

from husk.cli.install.record import inside
from husk.errors import SystemFault
from husk.kernel import process

_PLACES = ("/usr/lib/systemd/systemd", "/lib/systemd/systemd")
# A daemon with many containers takes its time to start.
_PATIENCE = 300.0


def present(root: Path) -> bool:
    return any(inside(root, place).exists() for place in _PLACES)


def running(root: Path) -> bool:
    """Return True if systemd is the first process of this very host."""
    return root == Path("/") and Path("/run/systemd/system").is_dir()


def enable(root: Path, units: Sequence[str], start: bool, running: bool) -> None:
    """From the next boot on; with `start`, from now on where systemd is running. SystemFault says why not."""
    if running:
        _tell(root, ["daemon-reload"])
    _tell(root, ["enable", *units])
    if start and running:
        # A daemon that already runs takes the socket from systemd and the new program only by a restart.
        _tell(root, ["stop", "husk.service"])
        _tell(root, ["restart", *units])


def disable(root: Path, units: Sequence[str], running: bool) -> None:
    """Never again, and no longer; containers run on."""
    if running:
        # The socket first: else a client that comes meanwhile starts the daemon again.
        _tell(root, ["stop", *sorted(units, key=lambda unit: not unit.endswith(".socket"))])
    _tell(root, ["disable", *units])


def reload(root: Path) -> None:
    """Make a systemd that is running read its units again."""
    _tell(root, ["daemon-reload"])


def _tell(root: Path, words: list[str]) -> None:
    program = shutil.which("systemctl")
    if program is None:
        raise SystemFault(f"there is no systemctl here for: systemctl {' '.join(words)}")
    elsewhere = [] if root == Path("/") else [f"--root={root}"]
    done = asyncio.run(process.run([program, *elsewhere, *words], timeout=_PATIENCE))
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise SystemFault(f"systemctl {' '.join(words)} failed: {said or f'status {done.returncode}'}")
