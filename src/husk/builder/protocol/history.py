"""Builds that were done, for `docker buildx history`: the last ones, kept beyond the daemon.

A client may follow: it hears of all that are known, then of each that begins, ends or is removed. What a build told is
kept with it as far as it is not too much, and can be had again by asking for its status. That, and what was stated
about its result, are blobs: a record names them by their digests, and `blob` has them.

The classic door writes here, too (`noted`), and nothing of connections is loaded for it.
"""

import asyncio
import hashlib
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from msgspec import Struct, field

from husk.aio.tasks import Tasks
from husk.builder.jobs.results import Predicate
from husk.builder.jobs.status_log import LogTold, StatusLog, StatusTold, Told, VertexTold, WarningTold
from husk.builder.protocol import progress
from husk.builder.protocol.messages import control
from husk.builder.protocol.messages.common import Status, timestamp
from husk.builder.store.build_records import RECORD
from husk.engine.model.clock import now_ns
from husk.errors import HuskError, InvalidParameter, NotFound
from husk.rpc.grpc.status import CANCELLED, UNKNOWN

MOST = 50
MOST_PINNED = 50
# What is kept of what a build told: numbers of things, and bytes of logs.
_MOST_TOLD = 5000
_MOST_BYTES = 1 << 20
# What is more than that is written in a thread, while others have their turn.
_AT_ONCE, _BYTES_AT_ONCE = 500, 1 << 20

STATUS_TYPE = "application/vnd.buildkit.status.v0"
ERROR_TYPE = "application/vnd.googeapis.google.rpc.status+proto"  # spelled so by the protocol
STATEMENT_TYPE = "application/vnd.in-toto+json"
PREDICATE_TYPE = "in-toto.io/predicate-type"
_LENGTH = struct.Struct("<I")


class KeptBuilds(Protocol):
    """The store that keeps builds and their records: `husk.builder.jobs.kept_builds`."""

    async def load(self) -> list[bytes]: ...

    async def save(self, ref: str, files: Mapping[str, bytes], /) -> None: ...

    async def read(self, ref: str, file: str, /) -> bytes | None: ...

    async def remove(self, ref: str, /) -> None: ...


InThread = Callable[..., Awaitable[dict[str, bytes]]]


class _Build(Struct):
    record: control.BuildHistoryRecord
    done: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class BuildHistory:
    def __init__(self, kept: KeptBuilds, in_thread: InThread = asyncio.to_thread) -> None:
        """`in_thread` calls what takes longer."""
        self._kept = kept
        self._in_thread = in_thread
        self._builds: dict[str, _Build] = {}
        self._listeners: set[asyncio.Queue[control.BuildHistoryEvent]] = set()
        self._tasks = Tasks()
        self._changing = asyncio.Lock()
        # Builds under way that others than BuildKit's protocol do, and what they tell.
        self._noted: dict[str, StatusLog] = {}
        self._is_loaded = False

    async def load(self) -> None:
        """Know what other daemons have kept. To be called before anything else; a second time it does nothing."""
        async with self._changing:
            if self._is_loaded:
                return
            for data in await self._kept.load():
                try:
                    record = control.BuildHistoryRecord.decode(data, most=None)
                except InvalidParameter:
                    continue
                self._builds[record.ref] = _Build(record, done=True)
            self._is_loaded = True
        self._forget_old()

    # --- builds ------------------------------------------------------------------------------------------------------

    def begin(self, request: control.SolveRequest) -> bool:
        """False if a build of that name is under way: this one will be refused."""
        if request.ref in self._builds and not self._builds[request.ref].done:
            return False
        record = control.BuildHistoryRecord(
            ref=request.ref,
            frontend=request.frontend,
            frontend_attrs=request.frontend_attrs,
            exporters=request.exporters,
            created_at=timestamp(now_ns()),
            generation=1,
        )
        self._builds[request.ref] = _Build(record)
        self._tell(control.BUILD_STARTED, record)
        return True

    async def complete(
        self,
        ref: str,
        told: Sequence[Told],
        response: dict[str, str] | None = None,
        error: Status | None = None,
        predicates: Mapping[str, Sequence[Predicate]] | None = None,
    ) -> None:
        """Complete a build's record. A caller that is cancelled meanwhile hears of that when all of it is done."""
        if (build := self._builds.get(ref)) is not None:
            ending = self._complete(build, told, response or {}, error, predicates or {})
            await self._tasks.to_its_end(ending, "complete a build's record")

    async def _complete(
        self,
        build: _Build,
        told: Sequence[Told],
        response: dict[str, str],
        error: Status | None,
        predicates: Mapping[str, Sequence[Predicate]],
    ) -> None:
        record = build.record
        record.completed_at = timestamp(now_ns())
        record.exporter_response = response
        record.error = Status(error.code, error.message) if error else None
        ends = {one.vertex.digest: one for one in told if isinstance(one, VertexTold)}
        record.total_steps = len(ends)
        record.completed_steps = sum(bool(one.completed) for one in ends.values())
        record.cached_steps = sum(one.cached for one in ends.values())
        record.warnings = sum(isinstance(one, WarningTold) for one in told)
        record.generation += 1
        if len(told) < _AT_ONCE and sum(map(progress.size, told)) < _BYTES_AT_ONCE:
            files = _attach(record, told, error, predicates)
        else:
            files = await self._in_thread(_attach, record, told, error, predicates)
        build.done = True
        build.ended.set()
        self._do(self._kept.save(record.ref, {**files, RECORD: record.encode()}), "keep a build's record")
        self._tell(control.BUILD_COMPLETE, record)
        self._forget_old()

    @asynccontextmanager
    async def noted(self, request: control.SolveRequest) -> AsyncIterator[StatusLog]:
        """A build that is done inside, by other ways than BuildKit's protocol, is in the history as all are. What it
        tells goes to the log that this gives."""
        await self.load()
        self.begin(request)
        log = self._noted[request.ref] = StatusLog()
        error: Status | None = Status(CANCELLED, "context canceled")
        try:
            yield log
            error = None
        except Exception as failure:
            error = Status(UNKNOWN, failure.message if isinstance(failure, HuskError) else str(failure))
            raise
        finally:
            log.close()
            del self._noted[request.ref]
            await self.complete(request.ref, log.told, {}, error)

    def told_by(self, ref: str) -> StatusLog | None:
        """Return the log of a noted build that is under way; None for any other build."""
        return self._noted.get(ref)

    def _forget_old(self) -> None:
        for pinned, most in ((False, MOST), (True, MOST_PINNED)):
            done = [ref for ref, build in self._builds.items() if build.done and build.record.pinned == pinned]
            for ref in done[: max(0, len(done) - most)]:
                del self._builds[ref]
                self._do(self._kept.remove(ref), "forget a build's record")

    def _do(self, work: Coroutine[object, object, None], name: str) -> None:
        """Change what is kept, one change after the other."""

        async def in_turn() -> None:
            async with self._changing:
                await work

        self._tasks.spawn(in_turn(), name)

    # --- what clients ask --------------------------------------------------------------------------------------------

    async def statuses(self, ref: str) -> Iterator[control.StatusResponse] | None:
        """Read the messages of a build that has ended; None if the build is not known, or has not ended."""
        build = self._builds.get(ref)
        if build is None or not build.done:
            return None
        logs = build.record.logs
        data = await self.blob(logs.digest) if logs else None
        return _read_statuses(data or b"")

    async def wait(self, ref: str) -> bool:
        """Until a build has ended and can be read here; False if it is not known."""
        if (build := self._builds.get(ref)) is None:
            return False
        return build.done or await build.ended.wait()

    async def blob(self, digest: str) -> bytes | None:
        """Read the blob that the record of a build names by its digest; None if no record does."""
        for ref, build in self._builds.items():
            if build.done and digest in _blobs_of(build.record):
                await self._tasks.join()  # it may be about to be kept
                return await self._kept.read(ref, digest.partition(":")[2])
        return None

    def update(self, request: control.UpdateBuildHistoryRequest) -> None:
        build = self._builds.get(request.ref)
        if build is None:
            raise NotFound(f"no such build: {request.ref}")
        if request.delete and build.done:
            del self._builds[request.ref]
            self._do(self._kept.remove(request.ref), "remove a build's record")
            self._tell(control.BUILD_DELETED, build.record)
        elif not request.finalize and not request.delete:
            build.record.pinned = request.pinned
            build.record.generation += 1
            if build.done:
                self._do(self._kept.save(request.ref, {RECORD: build.record.encode()}), "keep a build's record")
            self._tell(control.BUILD_COMPLETE if build.done else control.BUILD_STARTED, build.record)

    async def listen(self, request: control.BuildHistoryRequest) -> AsyncGenerator[control.BuildHistoryEvent, None]:
        events: asyncio.Queue[control.BuildHistoryEvent] = asyncio.Queue()
        self._listeners.add(events)
        try:
            for event in self._known(request):
                yield event
            while not request.early_exit:
                event = await events.get()
                if _is_wanted(event, request):
                    yield event
        finally:
            self._listeners.discard(events)

    def _known(self, request: control.BuildHistoryRequest) -> list[control.BuildHistoryEvent]:
        known = [
            control.BuildHistoryEvent(control.BUILD_COMPLETE if build.done else control.BUILD_STARTED, build.record)
            for build in self._builds.values()
        ]
        wanted = [event for event in known if _is_wanted(event, request)]
        return wanted[-request.limit :] if request.limit > 0 else wanted

    def _tell(self, kind: int, record: control.BuildHistoryRecord) -> None:
        for listener in self._listeners:
            listener.put_nowait(control.BuildHistoryEvent(kind, record))


# --- blobs of a record -----------------------------------------------------------------------------------------------


def _attach(
    record: control.BuildHistoryRecord,
    told: Sequence[Told],
    error: Status | None,
    predicates: Mapping[str, Sequence[Predicate]],
) -> dict[str, bytes]:
    """Name blobs in a record: what was told, where an error comes from, and what was stated about the results. They are
    files by their digests."""
    files: dict[str, bytes] = {}

    def add(data: bytes, media_type: str, annotations: dict[str, str] | None = None) -> control.Descriptor:
        digest = hashlib.sha256(data).hexdigest()
        files[digest] = data
        return control.Descriptor(media_type, f"sha256:{digest}", len(data), annotations or {})

    record.logs = add(_write_statuses(told), STATUS_TYPE)
    if error is not None and error.details:
        record.external_error = add(error.encode(), ERROR_TYPE)
    for platform, stated in predicates.items():
        named = [add(one.body, STATEMENT_TYPE, {PREDICATE_TYPE: one.type}) for one in stated]
        info = control.BuildResultInfo(attestations=named)
        if len(predicates) > 1:
            record.results[platform] = info
        else:
            record.result = info
    return files


def _blobs_of(record: control.BuildHistoryRecord) -> set[str]:
    results = [*([record.result] if record.result else []), *record.results.values()]
    named = {one.digest for result in results for one in result.attestations}
    return named | {one.digest for one in (record.logs, record.external_error) if one}


def _write_statuses(told: Sequence[Told]) -> bytes:
    """As much of it as is kept, in messages with their lengths before them."""
    encoded = (response.encode() for response in progress.responses(_kept_of(told)))
    return b"".join(_LENGTH.pack(len(one)) + one for one in encoded)


def _kept_of(told: Sequence[Told]) -> Iterator[Told]:
    """All vertices and warnings, and of the rest what came first."""
    count = size = 0
    for one in told:
        if isinstance(one, LogTold):
            size += len(one.data)
        if isinstance(one, LogTold | StatusTold):
            count += 1
            if count > _MOST_TOLD or size > _MOST_BYTES:
                continue
        yield one


def _read_statuses(data: bytes) -> Iterator[control.StatusResponse]:
    position = 0
    while position + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        try:
            yield control.StatusResponse.decode(data[position : position + length], most=None)
        except InvalidParameter:
            return
        position += length


def _is_wanted(event: control.BuildHistoryEvent, request: control.BuildHistoryRequest) -> bool:
    assert event.record is not None
    if request.ref and event.record.ref != request.ref:
        return False
    return not request.active_only or event.type != control.BUILD_COMPLETE
