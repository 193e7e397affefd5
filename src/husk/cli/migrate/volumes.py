"""Volumes: their files are copied on this host, with owners, modes, times, extended attributes and hard links.

A volume that is begun carries a label, one that is done a mark on its directory: what a broken run has begun is done
again, and what is done, or was here before, is not touched.
"""

import asyncio
import os
import sys
from collections.abc import Mapping

from husk.cli.migrate.report import MigrationReport
from husk.client.client import Client
from husk.client.volumes import Volume
from husk.errors import HuskError, NotFound, SystemFault

LABEL = "husk.migrated-from"
_MARK = "trusted.husk-migrated"
# In a process that sees the two directories and nothing else: a container may be at work in the one, and exchange a
# directory for a link while it is copied.
_COPY = "husk.builder.store.workers.bring_tree"


class VolumeMarks:
    """Marks on the directories of volumes that are done."""

    def set(self, place: str) -> None:
        try:
            os.setxattr(place, _MARK, b"done")
        except OSError as error:
            raise SystemFault(f"cannot mark {place} as done: {error.strerror}") from error

    def has(self, place: str) -> bool:
        try:
            return os.getxattr(place, _MARK) == b"done"
        except OSError:
            return False


MARKS = VolumeMarks()


async def bring_volumes(
    source: Client,
    target: Client,
    origin: str,
    running: Mapping[str, str],
    report: MigrationReport,
    marks: VolumeMarks = MARKS,
) -> None:
    """`running` names for a volume the container that may write into it meanwhile."""
    for volume in await source.volumes.list():
        what = f"volume {volume.name}"
        try:
            if volume.driver != "local" or volume.attrs.get("Options"):
                report.skipped(what, f"left out: it is of the driver {volume.driver} with options of its own")
                continue
            here = await _begun(target, volume, origin, marks)
            if here is None:
                report.skipped(what, "is here")
                continue
            report.begin(what)
            await _copy(volume.mountpoint, here.mountpoint)
            marks.set(here.mountpoint)
        except HuskError as error:
            report.failed(what, error.message)
            continue
        writer = running.get(volume.name)
        report.done(f"{what}, while {writer} was running: stop it for a copy of one moment" if writer else what)


async def _begun(target: Client, volume: Volume, origin: str, marks: VolumeMarks) -> Volume | None:
    """The volume to copy into; None where nothing is to be done."""
    try:
        there = await target.volumes.get(volume.name)
    except NotFound:
        return await target.volumes.create(volume.name, labels={**volume.labels, LABEL: origin})
    return there if there.labels.get(LABEL) == origin and not marks.has(there.mountpoint) else None


async def _copy(source: str, target: str) -> None:
    """All of it, on the disk when this returns. What a broken run has left is written again."""
    _require(source, target)
    await _run(sys.executable, "-m", _COPY, source, target)
    await _run("sync", "--file-system", target)


def _require(*places: str) -> None:
    for place in places:
        if not os.path.isdir(place):
            raise SystemFault(f"{place or 'its directory'} is not there: volumes come over on one host alone, as root")


async def _run(*command: str) -> None:
    started = await asyncio.create_subprocess_exec(*command, cwd="/", stderr=asyncio.subprocess.PIPE)
    try:
        _, said = await started.communicate()
    except asyncio.CancelledError:
        started.kill()
        await started.wait()
        raise
    if started.returncode != 0:
        lines = said.decode(errors="replace").strip().splitlines()
        raise SystemFault(lines[-1] if lines else f"{command[0]} ended with {started.returncode}")
