"""How do files get into and out of a container? Workers do it, inside the container's own view.

A copy sees the container as dockerd's does: its root file system with bind mounts and volumes in their places, whether
it runs or not. Data goes through a pipe at the speed of the slower side; the daemon holds a piece at a time.
"""

import asyncio
import contextlib
import json
import posixpath
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from husk.engine.containers.index import Index, Instance
from husk.engine.containers.model import Container
from husk.engine.containers.mounts import needs_staging
from husk.engine.containers.places import Places
from husk.engine.containers.roots import Roots
from husk.errors import Forbidden, InvalidParameter, NotFound, SystemFault
from husk.kernel import rooted
from husk.runtime.users import resolve_user
from husk.storage.body import Upload
from husk.storage.confine import Bind
from husk.storage.look import look
from husk.storage.nursery import Nursery
from husk.storage.pack import FileStatus, PackJob
from husk.storage.put import PutJob
from husk.storage.workers import Producer, Worker, WorkerDied

Publish = Callable[[Container, str], None]


@dataclass(frozen=True, slots=True)
class Archive:
    """A tar on its way out. `status` is what the path names; none for a whole root."""

    chunks: AsyncIterator[bytes]
    status: FileStatus | None = None


class Copier:
    def __init__(self, index: Index, places: Places, roots: Roots, nursery: Nursery, publish: Publish) -> None:
        self._index = index
        self._places = places
        self._roots = roots
        self._nursery = nursery
        self._publish = publish

    async def status(self, reference: str, path: str) -> FileStatus:
        """What `path` names inside the container."""
        instance = self._index.find(reference)
        async with self._roots.mounted(instance) as root:
            points = [item["target"] for item in self._binds(instance.record)]
            try:
                status = await asyncio.to_thread(look, root, points, clean_path(path))
            except FileNotFoundError:
                self._fail(instance, "missing", path, reference)
            if status is not None:
                return status
        async with self._pack(reference, path, only_status=True) as (_, status):
            return status

    @contextlib.asynccontextmanager
    async def read(self, reference: str, path: str) -> AsyncIterator[Archive]:
        """The file or directory as a tar; a failure on the way raises SystemFault out of `chunks`."""
        record = self._index.find(reference).record
        async with self._pack(reference, path, only_status=False) as (worker, status):
            self._publish(record, "archive-path")
            yield Archive(_whole(worker), status)

    @contextlib.asynccontextmanager
    async def export(self, reference: str) -> AsyncIterator[Archive]:
        """The whole root file system as a tar, without what is mounted in it."""
        instance = self._index.find(reference)
        async with self._roots.mounted(instance) as root:
            worker = await Producer.start(
                self._nursery,
                "husk.storage.pack",
                [json.dumps(PackJob(root=str(root), binds=[], path="", only_status=False))],
            )
            self._publish(instance.record, "export")
            try:
                yield Archive(_whole(worker))
            finally:
                worker.stop()

    async def write(
        self, reference: str, path: str, archive: AsyncIterator[bytes] | Upload, *, keep_kinds: bool, as_user: bool
    ) -> None:
        """Unpack `archive` into the directory `path`. `as_user` gives the files to the container's own user;
        `keep_kinds` refuses to put a file in a directory's place, or a directory in a file's."""
        instance = self._index.find(reference)
        record = instance.record
        async with self._roots.mounted(instance) as root:
            job = PutJob(
                root=str(root),
                binds=self._binds(record),
                path=clean_path(path),
                readonly_root=record.host_config.readonly_rootfs,
                keep_kinds=keep_kinds,
                length=None,
                owner=_owner(record, root) if as_user and record.config.user else None,
            )
            if isinstance(archive, Upload):
                job["length"] = archive.length
                worker = await Worker.start_upload(self._nursery, "husk.storage.put", [json.dumps(job)], archive)
            else:
                worker = await Worker.start(self._nursery, "husk.storage.put", [json.dumps(job)])
            try:
                if not isinstance(archive, Upload):
                    with contextlib.suppress(WorkerDied):
                        async for chunk in archive:
                            await worker.write(chunk)
                outcome = await worker.outcome()
            finally:
                worker.stop()
        if outcome != "ok":
            self._fail(instance, outcome, path, reference)
        self._publish(record, "extract-to-dir")

    @contextlib.asynccontextmanager
    async def _pack(self, reference: str, path: str, only_status: bool) -> AsyncIterator[tuple[Producer, FileStatus]]:
        instance = self._index.find(reference)
        async with self._roots.mounted(instance) as root:
            job = PackJob(
                root=str(root), binds=self._binds(instance.record), path=clean_path(path), only_status=only_status
            )
            worker = await Producer.start(self._nursery, "husk.storage.pack", [json.dumps(job)])
            try:
                outcome = await worker.line()
                if not outcome.startswith("found "):
                    self._fail(instance, outcome, path, reference)
                yield worker, json.loads(outcome.removeprefix("found "))
            finally:
                worker.stop()

    def _fail(self, instance: Instance, outcome: str, path: str, reference: str) -> NoReturn:
        if instance.record.state.status == "removing" or not self._index.present(instance):
            # Whatever the worker says: a removal has taken the files away under it.
            raise NotFound(f"No such container: {reference}")
        _fail(outcome, path, reference)

    def _binds(self, record: Container) -> list[Bind]:
        """What the container has mounted, as `plan` mounts it; a tmpfs exists only inside a running container."""
        place = self._places.place(record.id)
        binds = [
            Bind(
                source=str(place.staging / str(number)) if needs_staging(point) else point.source,
                target=point.destination,
                readonly=not point.rw,
            )
            for number, point in enumerate(record.mounts)
            if point.type != "tmpfs"
        ]
        taken = {item["target"] for item in binds}
        for target, source in (
            ("/etc/resolv.conf", place.resolv_conf),
            ("/etc/hostname", place.hostname),
            ("/etc/hosts", place.hosts),
        ):
            if target not in taken and source.exists():
                binds.append(Bind(source=str(source), target=target, readonly=False))
        return binds


def clean_path(path: str) -> str:
    """An absolute path without `.` and `..`; a slash or dot at its end stays, for it asks for what a link leads to."""
    if not path:
        raise InvalidParameter("bad parameter: path cannot be empty")
    if "\0" in path:
        raise InvalidParameter("bad parameter: path cannot contain a null byte")
    clean = "/" + posixpath.normpath("/" + path).lstrip("/")
    if path.rstrip("/").rpartition("/")[2] == ".":
        return clean.rstrip("/") + "/."
    return clean if clean == "/" or not path.endswith("/") else clean + "/"


def _owner(record: Container, root: Path) -> list[int]:
    user = resolve_user(record.config.user, rooted.read_text(root, "/etc/passwd"), rooted.read_text(root, "/etc/group"))
    return [user.uid, user.gid]


async def _whole(worker: Producer) -> AsyncIterator[bytes]:
    """The archive; it is an error if it ends before its end."""
    async for chunk in worker.chunks():
        yield chunk
    if await worker.line() != "whole":
        raise SystemFault("reading the container's files failed: see the daemon's log")


def _fail(outcome: str, path: str, reference: str) -> NoReturn:
    kind, _, message = outcome.partition(" ")
    match kind:
        case "missing":
            raise NotFound(f"Could not find the file {path} in container {reference}")
        case "invalid":
            raise InvalidParameter(message)
        case "forbidden":
            raise Forbidden(message)
        case _:
            raise SystemFault(message or "the worker that copies files died: see the daemon's log")
