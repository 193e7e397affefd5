"""The log of a container, or of several together, which may still grow: a page, the stream behind it, and a file."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from urllib.parse import urlencode

from husk.api.http.response import Answer
from husk.client.container import Container
from husk.client.logs import Output
from husk.dashboard.drawing import name_of
from husk.dashboard.grouping import group_of
from husk.dashboard.live import Message
from husk.dashboard.log_lines import Line, LineMaker, batches
from husk.dashboard.pages.container import found, shown
from husk.dashboard.router import page, stream
from husk.dashboard.visit import Visit
from husk.errors import HuskError, InvalidParameter, NotFound
from husk.text.digits import read_number

TAILS = ("1000", "10000", "100000", "all")
_STREAMS = ("", "stdout", "stderr")
_MOST_LINES = 10**9
# Logs in one page: each is a stream of its own from the engine.
_MOST_TOGETHER = 50


async def logs(visit: Visit) -> Answer:
    """`?tail=`, `?since=`, `?until=`, `?stream=` and `?search=` choose what is read."""
    container = await found(visit)
    wanted = {name: visit.query.get(name) for name in ("tail", "since", "until", "stream", "search")}
    wanted["tail"] = wanted["tail"] or TAILS[1]
    _checked(wanted["tail"], wanted["stream"])
    return shown(visit, container, "container_logs.html", "/logs", wanted=wanted, tails=TAILS)


async def lines(visit: Visit) -> Answer:
    """Server-sent events: `lines` with a list of [time, stream, text], and `end` where no more will come."""
    container = await found(visit)
    output = _output(visit, container, follow=True)
    return await visit.tell(_messages(visit, output, visit.query.get("search")))


async def _messages(visit: Visit, output: Output, search: str) -> AsyncIterator[Message]:
    async for batch in batches(aiter(output), search, visit.site.tasks):
        yield "lines", batch
    yield "end", {}


async def together(visit: Visit) -> Answer:
    """The logs of a project (`?project=`) or of chosen containers (`?id=`, several) in one."""
    containers = await _chosen(visit)
    tail, project = visit.query.get("tail") or TAILS[0], visit.query.get("project")
    _checked(tail, "")
    names = [name_of(each.attrs) for each in containers]
    source = [("tail", tail), ("since", visit.query.get("since")), ("project", project)]
    source += [] if project else [("id", each.id[:12]) for each in containers]
    return visit.page("logs.html", names=names, title=project or ", ".join(names), source=urlencode(source))


async def lines_together(visit: Visit) -> Answer:
    """Server-sent events: `lines` with a list of [time, stream, text, name]."""
    containers = await _chosen(visit)
    project = visit.query.get("project")
    outputs = [(shorter(name_of(each.attrs), project), _output(visit, each, follow=True)) for each in containers]
    return await visit.tell(_merged(visit, outputs))


async def _merged(visit: Visit, outputs: list[tuple[str, Output]]) -> AsyncIterator[Message]:
    """The batches of all, each as it comes: the page puts the lines in the order of their times."""
    ready: asyncio.Queue[tuple[str, list[Line]] | None] = asyncio.Queue()
    # A browser that reads slowly is waited for.
    turns = asyncio.Semaphore(len(outputs))

    async def read(name: str, output: Output) -> None:
        try:
            async for batch in batches(aiter(output), "", visit.site.tasks):
                await turns.acquire()
                ready.put_nowait((name, batch))
        except HuskError as error:
            ready.put_nowait((name, [("", "stderr", f"this log cannot be read: {error.message}")]))
        finally:
            ready.put_nowait(None)

    async with AsyncExitStack() as reading:
        for name, output in outputs:
            task = visit.site.tasks.spawn(read(name, output), f"log of {name}", awaited=True)
            reading.callback(task.cancel)
        left = len(outputs)
        while left:
            got = await ready.get()
            if got is None:
                left -= 1
                continue
            name, batch = got
            turns.release()
            yield "lines", [(*line, name) for line in batch]
    yield "end", {}


async def _chosen(visit: Visit) -> list[Container]:
    """The containers that are asked for, by name; NotFound for none, InvalidParameter for too many."""
    project, ids = visit.query.get("project"), set(visit.query.getall("id"))
    found = [
        each
        for each in await visit.engine.containers.list(all=True)
        if each.id[:12] in ids or (project and group_of(each.attrs)[1] == project)
    ]
    if not found:
        raise NotFound(f"no such project: {project}" if project else "no container is chosen")
    if len(found) > _MOST_TOGETHER:
        raise InvalidParameter(f"{len(found)} logs are too many for one page: at most {_MOST_TOGETHER}")
    return sorted(found, key=lambda each: name_of(each.attrs))


def shorter(name: str, project: str) -> str:
    """A container's name without its project's, which all have."""
    return name.removeprefix(f"{project}-").removeprefix(f"{project}_") or name


async def download(visit: Visit) -> Answer:
    """The same lines as a file."""
    container = await found(visit)
    output = _output(visit, container, follow=False)
    disposition = f'attachment; filename="{container.name}.log"'
    answer = visit.streamed("text/plain; charset=utf-8", Content_Disposition=disposition)
    maker = LineMaker(visit.query.get("search"))
    async for piece in output:
        if written := "".join(f"{time} {text}\n" for time, _, text in maker.feed(piece)):
            await answer.write(written.encode())
    await answer.write("".join(f"{time} {text}\n" for time, _, text in maker.rest()).encode())
    return answer


def _output(visit: Visit, container: Container, *, follow: bool) -> Output:
    query = visit.query
    tail, which = query.get("tail") or TAILS[1], query.get("stream")
    _checked(tail, which)
    return container.logs(
        follow=follow,
        tail=tail,
        since=query.get("since") or None,
        until=query.get("until") or None,
        stdout=which != "stderr",
        stderr=which != "stdout",
        timestamps=True,
    )


def _checked(tail: str, which: str) -> None:
    if tail != "all" and read_number(tail, most=_MOST_LINES) is None:
        raise InvalidParameter(f"invalid number of lines {tail!r}: expected a number or all")
    if which not in _STREAMS:
        raise InvalidParameter(f"invalid stream {which!r}: expected stdout or stderr")


ROUTES = (
    page("/logs", together),
    stream("/logs/lines", lines_together),
    page("/containers/{name}/logs", logs),
    stream("/containers/{name}/logs/lines", lines),
    stream("/containers/{name}/logs/file", download),
)
