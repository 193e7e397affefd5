"""Copy files into and out of a container, export and compare it.

Workers do it, inside the container's own view.

A copy sees the container as dockerd's does: its root file system with bind mounts and volumes in their places, whether
it runs or not; and while it runs, its tmpfs, which dockerd's does not see. Data goes through a pipe at the speed of the
slower side; the daemon holds a piece at a time.
"""

import asyncio
import contextlib
import functools
import posixpath
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import NoReturn

import msgspec

from husk.aio import threads
from husk.engine.containers.drivers import Assembly
from husk.engine.containers.index import ContainerIndex, Instance
from husk.engine.containers.mounts import Roots
from husk.engine.containers.shared_files import files_of
from husk.engine.model.container import Container
from husk.engine.model.paths import check_length
from husk.errors import Forbidden, InvalidParameter, NotFound, SystemFault
from husk.runtime.assembly import sources
from husk.runtime.spec.users import resolve_user
from husk.storage.changes import FileChange, changes
from husk.storage.workers.answers import Answer, Done, Failed, Invalid, Missing, Refused
from husk.storage.workers.answers import FileStatus as FileStatus
from husk.storage.workers.body import BodyUpload as BodyUpload
from husk.storage.workers.handle import Producer, Worker, WorkerDied
from husk.storage.workers.jobs import PackJob, PutJob
from husk.storage.workers.nursery import Nursery
from husk.storage.workers.parts import NO_MEMORY, Bind, Memory

Publish = Callable[[Container, str], None]
_SHM = "/dev/shm"


class Archive(msgspec.Struct, frozen=True):
    """A tar on its way out. `status` is what the path names; none for a whole root.

    If it was asked for with an outlet, the socket of a client, `send` sends it there as the chunks of an answer; else
    it comes out of `chunks`. A failure on the way raises SystemFault out of both.
    """

    worker: Producer
    status: FileStatus | None = None

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self.worker.chunks():
            yield chunk
        await self._check_end()

    async def send(self) -> None:
        self.worker.begin()
        await self._check_end()

    async def _check_end(self) -> None:
        if await self.worker.answer() != Done():
            raise SystemFault("reading the container's files failed: see the daemon's log")


class _Target(msgspec.Struct, frozen=True):
    """A path of a container whose root is mounted: as it was asked for, and made plain."""

    instance: Instance
    reference: str
    root: Path
    binds: list[Bind]
    memory: Memory
    path: str
    clean: str


class ContainerCopier:
    def __init__(
        self, index: ContainerIndex, assembly: Assembly, roots: Roots, nursery: Nursery, publish: Publish
    ) -> None:
        self._index = index
        self._assembly = assembly
        self._roots = roots
        self._nursery = nursery
        self._publish = publish

    async def status(self, reference: str, path: str) -> FileStatus:
        """Return the status of the file that `path` names inside the container."""
        async with self._at(reference, path) as target, self._pack(target, only_status=True) as (_, status):
            return status

    @contextlib.asynccontextmanager
    async def read(self, reference: str, path: str, outlet: int | None = None) -> AsyncIterator[Archive]:
        """The file or directory as a tar."""
        async with self._at(reference, path) as target, self._pack(target, outlet=outlet) as (worker, status):
            self._publish(target.instance.record, "archive-path")
            yield Archive(worker, status)

    @contextlib.asynccontextmanager
    async def export(self, reference: str, outlet: int | None = None) -> AsyncIterator[Archive]:
        """The whole root file system as a tar, without what is mounted in it."""
        instance = self._index.find(reference)
        async with self._roots.mounted(instance) as root:
            worker = await self._start_packing(root, [], NO_MEMORY, "", outlet=outlet)
            self._publish(instance.record, "export")
            try:
                yield Archive(worker)
            finally:
                worker.stop()

    async def write(
        self, reference: str, path: str, archive: AsyncIterator[bytes] | BodyUpload, *, keep_kinds: bool, as_user: bool
    ) -> None:
        """Unpack `archive` into the directory `path`. `as_user` gives the files to the container's own user;
        `keep_kinds` refuses to put a file in a directory's place, or a directory in a file's."""
        async with self._at(reference, path) as target:
            record = target.instance.record
            await self._answer(target.binds)
            upload = archive if isinstance(archive, BodyUpload) else None
            job = PutJob(
                root=str(target.root),
                binds=target.binds,
                path=target.clean,
                memory=target.memory,
                readonly_root=record.host_config.readonly_rootfs,
                keep_kinds=keep_kinds,
                owner=await asyncio.to_thread(self._owner, record) if as_user and record.config.user else None,
                as_body=upload is not None,
                length=upload.length if upload is not None else None,
            )
            if upload is not None:
                worker = await Worker.start_upload(self._nursery, job, upload)
            else:
                worker = await Worker.start(self._nursery, job)
            try:
                if not isinstance(archive, BodyUpload):
                    with contextlib.suppress(WorkerDied):
                        async for chunk in archive:
                            await worker.write(chunk)
                outcome = await worker.outcome()
            finally:
                worker.stop()
        if outcome != Done():
            self._fail(target.instance, outcome, path, reference)
        self._publish(record, "extract-to-dir")

    async def _answer(self, binds: list[Bind]) -> None:
        """Touch the source of each bind before a worker walks into it, which nobody could take out again."""
        for item in binds:
            await self._assembly.touch(item.source, functools.partial(sources.exists, item.source))

    @contextlib.asynccontextmanager
    async def _at(self, reference: str, path: str) -> AsyncIterator[_Target]:
        instance = self._index.find(reference)
        async with self._roots.mounted(instance) as root:
            binds, memory = self._binds(instance.record), _memory(instance.record)
            yield _Target(instance, reference, root, binds, memory, path, clean_path(path))

    @contextlib.asynccontextmanager
    async def _pack(
        self, target: _Target, only_status: bool = False, outlet: int | None = None
    ) -> AsyncIterator[tuple[Producer, FileStatus]]:
        worker = await self._start_packing(target.root, target.binds, target.memory, target.clean, only_status, outlet)
        try:
            outcome = await worker.answer()
            if not isinstance(outcome, FileStatus):
                self._fail(target.instance, outcome, target.path, target.reference)
            yield worker, outcome
        finally:
            worker.stop()

    async def _start_packing(
        self,
        root: Path,
        binds: list[Bind],
        memory: Memory,
        path: str,
        only_status: bool = False,
        outlet: int | None = None,
    ) -> Producer:
        await self._answer(binds)
        job = PackJob(str(root), binds, path, memory, only_status, as_answer=outlet is not None)
        if outlet is None:
            return await Producer.start(self._nursery, job)
        return await Producer.start_answer(self._nursery, job, outlet)

    def _fail(self, instance: Instance, outcome: Answer | None, path: str, reference: str) -> NoReturn:
        if instance.record.state.status == "removing" or not self._index.present(instance):
            # Whatever the worker says: a removal has taken the files away under it.
            raise NotFound(f"No such container: {reference}")
        _fail(outcome, path, reference)

    def _owner(self, record: Container) -> tuple[int, int]:
        root = self._assembly.root(record.id)
        user = resolve_user(record.config.user, root.text_of("/etc/passwd"), root.text_of("/etc/group"))
        return user.uid, user.gid

    def _binds(self, record: Container) -> list[Bind]:
        """Return the container's mounts as `plan` makes them; a tmpfs exists only inside a running container."""
        paths = files_of(record, self._assembly.paths, lambda reference: self._index.find(reference).record)
        binds = [
            Bind(
                source=str(paths.staging / str(number)) if point.staged else point.source,
                target=point.destination,
                readonly=not point.rw,
            )
            for number, point in enumerate(record.mounts)
            if point.type != "tmpfs"
        ]
        taken = {item.target for item in binds}
        for target, source in (
            ("/etc/resolv.conf", paths.resolv_conf),
            ("/etc/hostname", paths.hostname),
            ("/etc/hosts", paths.hosts),
        ):
            if target not in taken and sources.exists(str(source)):
                binds.append(Bind(source=str(source), target=target, readonly=False))
        return binds


def _memory(record: Container) -> Memory:
    """The tmpfs of a container, which are reached through its process; a shared memory is there while it runs."""
    runs = record.state.status in ("running", "paused") and record.state.pid > 0
    mounted = {point.destination: point.type for point in record.mounts}
    declared = [posixpath.normpath(place) for place in record.host_config.tmpfs or {}]
    places = [place for place in declared if mounted.get(place, "tmpfs") == "tmpfs"]
    places += [place for place, kind in mounted.items() if kind == "tmpfs"]
    if runs and _SHM not in mounted:
        places.append(_SHM)
    return Memory(list(dict.fromkeys(places)), record.state.pid if runs else 0)


def clean_path(path: str) -> str:
    """An absolute path without `.` and `..`; a slash or dot at its end stays, for it asks for what a link leads to."""
    if not path:
        raise InvalidParameter("bad parameter: path cannot be empty")
    if "\0" in path:
        raise InvalidParameter("bad parameter: path cannot contain a null byte")
    check_length(path)
    clean = "/" + posixpath.normpath("/" + path).lstrip("/")
    if path.rstrip("/").rpartition("/")[2] == ".":
        return clean.rstrip("/") + "/."
    return clean if clean == "/" or not path.endswith("/") else clean + "/"


def _fail(outcome: Answer | None, path: str, reference: str) -> NoReturn:
    match outcome:
        case Missing():
            raise NotFound(f"Could not find the file {path} in container {reference}")
        case Invalid(message):
            raise InvalidParameter(message)
        case Refused(message):
            raise Forbidden(message)
        case Failed(message):
            raise SystemFault(message)
        case _:
            raise SystemFault("the worker that copies files died: see the daemon's log")


class Differ:
    """Finder of the changes that a container has made to its file system since it was created."""

    def __init__(self, index: ContainerIndex, assembly: Assembly, roots: Roots) -> None:
        self._index = index
        self._assembly = assembly
        self._roots = roots

    async def changes(self, reference: str) -> list[FileChange]:
        record = self._index.find(reference).record
        upper = self._assembly.root(record.id).upper
        return await threads.trees(lambda: changes(str(upper), self._roots.lower(record)))
