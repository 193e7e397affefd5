"""The first page, and the stream that keeps every open page up to date."""

from collections.abc import AsyncIterator
from contextlib import ExitStack

from husk.api.http.response import Answer
from husk.dashboard.live import Message
from husk.dashboard.router import page, stream
from husk.dashboard.visit import Visit


async def home(visit: Visit) -> Answer:
    return visit.redirect("/containers")


async def live(visit: Visit) -> Answer:
    """Stream the engine's events to the script that fetches regions again; with `?stats=ID` or `?stats=all` also what
    that container, or all, use. It is one stream, for a browser opens few connections to one server."""
    return await visit.tell(_messages(visit, visit.query.get("stats")))


async def _messages(visit: Visit, stats: str) -> AsyncIterator[Message]:
    with ExitStack() as open_ones:
        queue = open_ones.enter_context(visit.site.live.listening())
        if stats:
            open_ones.enter_context(visit.site.sampler.watching(stats, queue))
        while True:
            yield await queue.get()


ROUTES = (
    page("/", home),
    stream("/live", live),
)
