"""The service Control: builds, what they tell and have told, workers, and the cache."""

import re
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing

from husk.aio.tasks import Tasks
from husk.builder.cache.prune import FILTERS, Item
from husk.builder.jobs.results import Question
from husk.builder.jobs.status_log import StatusLog
from husk.builder.protocol import policies, progress
from husk.builder.protocol.errors import failed_build
from husk.builder.protocol.history import BuildHistory
from husk.builder.protocol.messages import control
from husk.builder.protocol.messages.common import Status, timestamp
from husk.builder.protocol.serve import Metadata, answer, tell
from husk.builder.protocol.worker import version
from husk.builder.service import Builder
from husk.builder.solve import BuildRequest, Export
from husk.builder.solver.interfaces import CacheSource
from husk.engine.model.filters import Filters
from husk.errors import Conflict, HuskError, InvalidParameter, NotFound
from husk.rpc.grpc.connection import Handler
from husk.rpc.grpc.status import CANCELLED, UNKNOWN

_SERVICE = "/moby.buildkit.v1.Control"
# A message of its own for each thing that is told would wake the client a hundred times in a small build.
_PAUSE = 0.03
_MOST_INTERNAL = 100
# All of the cache is looked through for each.
_MOST_FILTERS, _LONGEST_FILTERS = 100, 16_384
_TERM = re.compile(r"(?P<key>[\w.-]+)(?:(?P<how>==|=|~=)(?P<value>\"[^\"]*\"|[^,]*))?", re.ASCII)


class Control:
    def __init__(
        self, builder: Builder, worker: Callable[[], control.WorkerRecord], history: BuildHistory | None = None
    ) -> None:
        """`worker` describes what carries builds out; `history` is one that others write to, as well."""
        self._builder = builder
        self.worker = worker
        # What the frontend of a build may ask for, as it came.
        self.inputs: dict[str, dict[str, bytes]] = {}
        self.history = history or BuildHistory(builder.kept)
        self._tasks = Tasks()
        # The last builds of clients for themselves, of which no record is kept.
        self._internal: deque[str] = deque(maxlen=_MOST_INTERNAL)

    @property
    def methods(self) -> dict[str, Handler]:
        return {
            f"{_SERVICE}/Solve": answer(control.SolveRequest, self.solve),
            f"{_SERVICE}/Status": tell(control.StatusRequest, self.status),
            f"{_SERVICE}/ListWorkers": answer(control.ListWorkersRequest, self.list_workers),
            f"{_SERVICE}/Info": answer(control.InfoRequest, self.info),
            f"{_SERVICE}/DiskUsage": answer(control.DiskUsageRequest, self.disk_usage),
            f"{_SERVICE}/Prune": tell(control.PruneRequest, self.prune),
            f"{_SERVICE}/ListenBuildHistory": tell(control.BuildHistoryRequest, self.listen_history),
            f"{_SERVICE}/UpdateBuildHistory": answer(control.UpdateBuildHistoryRequest, self.update_history),
        }

    # --- builds ------------------------------------------------------------------------------------------------------

    async def solve(self, request: control.SolveRequest, metadata: Metadata) -> control.SolveResponse:
        wanted = build_request(request, await self._question(request))
        await self.history.load()
        if request.ref in self.inputs:
            raise Conflict(f"job ID {request.ref} exists")
        if request.ref:
            self.inputs[request.ref] = request.frontend_inputs
        try:
            if request.internal or not request.ref or not self.history.begin(request):
                return control.SolveResponse(dict(await self._builder.solve(wanted)))
            return await self._remembered(request, wanted)
        except HuskError as error:
            raise failed_build(error) from error
        finally:
            self.inputs.pop(request.ref, None)
            if request.internal and request.ref:
                self._internal.append(request.ref)

    async def _question(self, request: control.SolveRequest) -> Question | None:
        if request.definition is None and not request.frontend:
            return None
        read = self._builder.definitions.read
        return Question(
            definition=await read(request.definition) if request.definition is not None else None,
            frontend=request.frontend,
            attributes=request.frontend_attrs,
            inputs={name: await read(one) for name, one in request.frontend_inputs.items()},
        )

    async def _remembered(self, request: control.SolveRequest, wanted: BuildRequest) -> control.SolveResponse:
        """Build, and keep how it went."""
        begun = self._tasks.spawn(self._builder.jobs.get(request.ref), "job of a build", awaited=True)
        response: dict[str, str] = {}
        error: Status | None = Status(CANCELLED, "context canceled")
        try:
            response = dict(await self._builder.solve(wanted))
            error = None
        except HuskError as failure:
            described = failed_build(failure).details
            error = Status.decode(described) if described else Status(UNKNOWN, failure.message)
            raise
        except Exception as failure:
            error = Status(UNKNOWN, str(failure))
            raise
        finally:
            known = begun.done() and not begun.cancelled() and begun.exception() is None
            begun.cancel()
            job = begun.result() if known else None
            told = job.log.told if job else []
            await self.history.complete(request.ref, told, response, error, job.predicates if job else {})
        return control.SolveResponse(response)

    async def status(
        self, request: control.StatusRequest, metadata: Metadata
    ) -> AsyncGenerator[control.StatusResponse, None]:
        await self.history.load()
        log = await self._log(request.ref)
        if not isinstance(log, StatusLog):
            for response in log:
                yield response
            return
        async for told in log.follow(_PAUSE):
            for response in progress.responses(told):
                yield response

    async def _log(self, ref: str) -> StatusLog | Iterable[control.StatusResponse]:
        """Return the log of a build that is under way, or the messages of one that has ended."""
        if (told := await self.history.statuses(ref)) is not None:
            return told
        try:
            return self.history.told_by(ref) or (await self._builder.jobs.get(ref)).log
        except NotFound:
            # It is ending: its job is gone, and its record is about to be there.
            if await self.history.wait(ref):
                return await self.history.statuses(ref) or ()
            # A slow client asks for both at once, and its question may come behind the end of the build.
            if ref in self._internal:
                return ()
            raise

    # --- history -----------------------------------------------------------------------------------------------------

    async def listen_history(
        self, request: control.BuildHistoryRequest, metadata: Metadata
    ) -> AsyncGenerator[control.BuildHistoryEvent, None]:
        await self.history.load()
        async with aclosing(self.history.listen(request)) as events:
            async for event in events:
                yield event

    async def update_history(
        self, request: control.UpdateBuildHistoryRequest, metadata: Metadata
    ) -> control.UpdateBuildHistoryResponse:
        await self.history.load()
        self.history.update(request)
        return control.UpdateBuildHistoryResponse()

    # --- workers -----------------------------------------------------------------------------------------------------

    async def list_workers(
        self, request: control.ListWorkersRequest, metadata: Metadata
    ) -> control.ListWorkersResponse:
        return control.ListWorkersResponse([self.worker()])

    async def info(self, request: control.InfoRequest, metadata: Metadata) -> control.InfoResponse:
        return control.InfoResponse(version())

    # --- the cache ---------------------------------------------------------------------------------------------------

    async def disk_usage(self, request: control.DiskUsageRequest, metadata: Metadata) -> control.DiskUsageResponse:
        items: dict[str, Item] = {}
        for wanted in read_filters(request.filter, request.age_limit):
            items |= {item.id: item for item in await self._builder.items(wanted)}
        return control.DiskUsageResponse([usage_record(item) for item in items.values()])

    async def prune(
        self, request: control.PruneRequest, metadata: Metadata
    ) -> AsyncGenerator[control.UsageRecord, None]:
        keep = request.max_used_space or request.reserved_space
        for wanted in read_filters(request.filter, request.keep_duration):
            for item in (await self._builder.prune(wanted, all=request.all, keep=keep)).items:
                yield usage_record(item)


def build_request(request: control.SolveRequest, question: Question | None) -> BuildRequest:
    """A client's question in our words."""
    exports = [Export(one.type, one.attrs) for one in request.exporters]
    if not exports and request.old_exporter:
        exports = [Export(request.old_exporter, request.old_exporter_attrs)]
    cache = request.cache or control.CacheOptions()
    return BuildRequest(
        id=request.ref,
        session=request.session,
        question=question,
        exports=exports,
        cache_exports=[CacheSource(one.type, one.attrs) for one in cache.exports],
        cache_imports=[CacheSource(one.type, one.attrs) for one in cache.imports],
        entitlements=request.entitlements,
        attributes=request.frontend_attrs,
        source_policy=policies.policy(request.source_policy),
        policy_session=request.source_policy_session,
    )


def usage_record(item: Item) -> control.UsageRecord:
    return control.UsageRecord(
        id=item.id,
        in_use=item.in_use,
        size=item.size,
        created_at=timestamp(item.created),
        last_used_at=timestamp(item.last_used),
        usage_count=item.uses,
        description=item.description,
        record_type=item.type,
        shared=item.shared,
        parents=item.parents,
    )


def read_filters(texts: Sequence[str], unused_for: int = 0) -> list[Filters]:
    """Read filters as BuildKit's clients write them (`type==regular,shared`).

    Each text is one filter, and what fits one of them is meant; none at all means everything.

    `unused_for` is a time in nanoseconds that has to have gone by since a record was used.
    """
    if len(texts) > _MOST_FILTERS or sum(map(len, texts)) > _LONGEST_FILTERS:
        raise InvalidParameter(f"more than {_MOST_FILTERS} filters, or than {_LONGEST_FILTERS} letters of them")
    also = {"until": [f"{unused_for // 10**9}s"]} if unused_for else {}
    return [Filters({**_terms(text), **also}) for text in texts or [""]]


def _terms(text: str) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        term = _TERM.fullmatch(part)
        if term is None or term["key"] not in FILTERS:
            raise InvalidParameter(f"invalid filter {part!r}: known are {', '.join(FILTERS)}")
        value = "true" if term["how"] is None else term["value"].strip('"')
        fields.setdefault(term["key"], []).append(value)
    return fields
