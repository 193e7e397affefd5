"""The log of a container, which may still grow: a page, the stream behind it, and the log as a file."""

from collections.abc import AsyncIterator

from husk.api.http.response import Answer
from husk.client.container import Container
from husk.client.logs import Output
from husk.dashboard.live import Message
from husk.dashboard.log_lines import LineMaker, batches
from husk.dashboard.pages.container import found, shown
from husk.dashboard.router import page, stream
from husk.dashboard.visit import Visit
from husk.errors import InvalidParameter
from husk.text.digits import read_number

TAILS = ("1000", "10000", "100000", "all")
_STREAMS = ("", "stdout", "stderr")
_MOST_LINES = 10**9


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
    page("/containers/{name}/logs", logs),
    stream("/containers/{name}/logs/lines", lines),
    stream("/containers/{name}/logs/file", download),
)
