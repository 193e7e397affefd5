"""Services and their tasks."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import msgspec

from husk.aio.tasks import Tasks
from husk.api.calls.call import Call
from husk.api.calls.router import change, read, stream
from husk.api.http.response import Answer
from husk.api.routes.console import WITH_MULTIPLEXED_TYPE, log_query
from husk.api.routes.transfer import credentials_of
from husk.api.streams.closing import closing
from husk.api.streams.framing import MULTIPLEXED_STREAM, RAW_STREAM, LogEncoder
from husk.api.types.services import ServiceCreated, Warnings
from husk.api.views import services as views
from husk.engine.model.filters import Filters
from husk.errors import InvalidParameter
from husk.swarm.model.services import ContainerSpec, ServiceSpec, Task
from husk.swarm.spec.matching import SERVICE_FILTERS, TASK_FILTERS
from husk.text.gojson import Reader

T = TypeVar("T")

_spec = Reader(ServiceSpec)
# How many pieces wait for a client that reads slowly.
BACKLOG = 2


async def listing(call: Call) -> Answer:
    services = call.engine.swarm
    found = services.listing(Filters.parse(call.text("filters"), SERVICE_FILTERS))
    status = call.flag("status")
    return call.json([views.service_document(s, services.tasks_of(s) if status else None) for s in found])


async def create(call: Call) -> Answer:
    spec = await call.body(_spec)
    call.request.meant = spec
    service = await call.engine.swarm.create(spec, credentials_of(call))
    return call.json(ServiceCreated(id=service.id), status=201)


async def inspect(call: Call) -> Answer:
    service = call.engine.swarm.find(call.argument)
    return call.json(views.service_document(service, defaults=call.flag("insertDefaults")))


async def update(call: Call) -> Answer:
    rollback = call.text("rollback")
    if rollback not in ("", "previous"):
        raise InvalidParameter(f'invalid rollback value "{rollback}": only "previous" is known')
    spec = await call.body(_spec)
    call.request.meant = spec
    await call.engine.swarm.update(
        call.argument,
        call.object_version(),
        spec,
        rollback=bool(rollback),
        credentials=credentials_of(call),
    )
    return call.json(Warnings())


async def remove(call: Call) -> Answer:
    await call.engine.swarm.remove(call.argument)
    return call.empty(200)


async def tasks(call: Call) -> Answer:
    filters = Filters.parse(call.text("filters"), TASK_FILTERS)
    services = call.engine.swarm
    return call.json([views.task_document(task, services.places_of(task)) for task in services.tasks(filters)])


async def task(call: Call) -> Answer:
    services = call.engine.swarm
    found = services.find_task(call.argument)
    return call.json(views.task_document(found, services.places_of(found)))


async def service_logs(call: Call) -> Answer:
    services = call.engine.swarm
    service = services.find(call.argument)
    tasks, described = services.tasks_of(service), service.spec.task_template.container_spec
    if not call.flag("follow"):
        return await _logs(call, tasks, described)
    with services.followers.following(service.id) as coming:
        return await _logs(call, [task for task in tasks if services.logs.has_started(task)], described, coming)


async def task_logs(call: Call) -> Answer:
    task = call.engine.swarm.find_task(call.argument)
    return await _logs(call, [task], task.spec.container_spec)


async def _logs(
    call: Call,
    tasks: list[Task],
    described: ContainerSpec | None,
    coming: "asyncio.Queue[Task | None] | None" = None,
) -> Answer:
    """The logs of several tasks as they come, each line with the task it is from where the client asks for details.

    `coming` are tasks that start later, whose logs belong to it too.
    """
    query = log_query(call)
    tty = described is not None and described.tty
    timestamps, details = call.flag("timestamps"), call.flag("details")

    def form(task: Task) -> LogEncoder:
        attributes = _attributes(task) if details else b""
        return LogEncoder(multiplexed=not tty, timestamps=timestamps, attributes=attributes)

    sources = call.engine.swarm.logs.of(tasks, query, form)
    plain = tty or call.version < WITH_MULTIPLEXED_TYPE
    response = call.stream(RAW_STREAM if plain else MULTIPLEXED_STREAM)
    known = {task.id for tasks, _ in sources for task in tasks}
    pieces = _Pieces()

    async def join(coming: "asyncio.Queue[Task | None]") -> None:
        """Each task that comes is one more to wait for, and so is whether another comes."""
        while (task := await coming.get()) is not None:
            if task.id in known:
                continue
            known.add(task.id)
            whole = msgspec.structs.replace(query, tail=None)
            for _, batches in call.engine.swarm.logs.of([task], whole, form):
                pieces.wait_for(pieces.carry, batches, f"log of task {task.id}")

    try:
        for some, batches in sources:
            pieces.wait_for(pieces.carry, batches, f"log of task {some[0].id}")
        if coming is not None:
            pieces.wait_for(join, coming, "tasks to come")
        async for data in pieces:
            await response.write(data)
    finally:
        await pieces.close()
    await response.write_eof()
    return response


class _Pieces:
    """The pieces of several logs, in the order in which they come, until all these logs have ended."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue(BACKLOG)
        self._carriers = Tasks()
        self._left = 0

    def wait_for(self, work: Callable[[T], Awaitable[None]], source: T, name: str) -> None:
        self._left += 1
        self._carriers.spawn(self._to_its_end(work, source), name)

    async def carry(self, batches: AsyncIterator[bytes]) -> None:
        async with closing(batches):
            async for data in batches:
                await self._waiting.put(data)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._left:
            if (data := await self._waiting.get()) is None:
                self._left -= 1
            elif data:
                yield data

    async def close(self) -> None:
        await self._carriers.cancel_all()

    async def _to_its_end(self, work: Callable[[T], Awaitable[None]], source: T) -> None:
        try:
            await work(source)
        except asyncio.CancelledError:
            raise  # nobody takes anything any more: to wait until somebody does would be for ever
        except BaseException:
            await self._waiting.put(None)
            raise
        await self._waiting.put(None)


def _attributes(task: Task) -> bytes:
    prefix = "com.docker.swarm."
    return f"{prefix}node.id={task.node_id},{prefix}service.id={task.service_id},{prefix}task.id={task.id} ".encode()


ROUTES = (
    read("/services", listing),
    change("POST", "/services/create", create),
    read("/services/{id}", inspect),
    change("POST", "/services/{id}/update", update),
    change("DELETE", "/services/{id}", remove),
    stream("GET", "/services/{id}/logs", service_logs),
    read("/tasks", tasks),
    read("/tasks/{id}", task),
    stream("GET", "/tasks/{id}/logs", task_logs),
)
