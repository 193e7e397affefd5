"""Builds that were done, for `docker buildx history`: the last ones, in memory, while the daemon lives.

A client may follow: it hears of all that are known, then of each that begins, ends or is removed. What a build told is
kept with it if it is not too much, and can be had again by asking for its status.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from msgspec import Struct

from husk.api.buildkit.messages import control
from husk.api.buildkit.messages.common import Status, timestamp
from husk.engine.builder.status import LogTold, Told, VertexTold
from husk.engine.model.clock import now_ns
from husk.errors import NotFound

MOST = 50
MOST_PINNED = 50
# What is kept of what a build told: things, and bytes of logs.
_MOST_TOLD = 5000
_MOST_BYTES = 1 << 20


class _Build(Struct):
    record: control.BuildHistoryRecord
    done: bool = False
    told: Sequence[Told] = ()


class History:
    def __init__(self) -> None:
        self._builds: dict[str, _Build] = {}
        self._listeners: set[asyncio.Queue[control.BuildHistoryEvent]] = set()

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

    def complete(
        self, ref: str, told: Sequence[Told], response: dict[str, str] | None = None, error: Status | None = None
    ) -> None:
        build = self._builds.get(ref)
        if build is None:
            return
        record = build.record
        record.completed_at = timestamp(now_ns())
        record.exporter_response = response or {}
        record.error = error
        ends = {one.vertex.digest: one for one in told if isinstance(one, VertexTold)}
        record.total_steps = len(ends)
        record.completed_steps = sum(bool(one.completed) for one in ends.values())
        record.cached_steps = sum(one.cached for one in ends.values())
        record.generation += 1
        build.done = True
        if len(told) <= _MOST_TOLD and sum(len(one.data) for one in told if isinstance(one, LogTold)) <= _MOST_BYTES:
            build.told = list(told)
        self._tell(control.BUILD_COMPLETE, record)
        self._forget_old()

    def _forget_old(self) -> None:
        for pinned, most in ((False, MOST), (True, MOST_PINNED)):
            done = [ref for ref, build in self._builds.items() if build.done and build.record.pinned == pinned]
            for ref in done[: max(0, len(done) - most)]:
                del self._builds[ref]

    # --- what clients ask --------------------------------------------------------------------------------------------

    def told(self, ref: str) -> Sequence[Told] | None:
        """What a build told that has ended; None if it is not known."""
        build = self._builds.get(ref)
        return build.told if build is not None and build.done else None

    def update(self, request: control.UpdateBuildHistoryRequest) -> None:
        build = self._builds.get(request.ref)
        if build is None:
            raise NotFound(f"no such build: {request.ref}")
        if request.delete and build.done:
            del self._builds[request.ref]
            self._tell(control.BUILD_DELETED, build.record)
        elif not request.finalize and not request.delete:
            build.record.pinned = request.pinned
            build.record.generation += 1
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


def _is_wanted(event: control.BuildHistoryEvent, request: control.BuildHistoryRequest) -> bool:
    assert event.record is not None
    if request.ref and event.record.ref != request.ref:
        return False
    return not request.active_only or event.type != control.BUILD_COMPLETE
