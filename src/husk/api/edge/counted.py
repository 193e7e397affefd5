"""The HTTP edge where requests are counted, for `--metrics-addr`. Without it the daemon has the plain `ApiEdge`.

What a request costs here is a look at the clock before and behind it, and a few additions.
"""

import asyncio
from collections.abc import Coroutine
from time import perf_counter
from typing import Any, Protocol

from husk.api.edge.server import ApiEdge
from husk.api.http.limits import HttpLimits
from husk.api.http.request import Request
from husk.api.http.response import Answer, Response, StreamedResponse
from husk.api.versioning import MINIMUM, Version
from husk.composition import Engine

# The client has left before there was an answer: nginx's number for it.
CLIENT_LEFT = 499
_BROKEN = 500
# What HTTP/2 from the first byte leads to.
BUILDKIT = "/grpc"


class Counts(Protocol):
    """A counter of requests. It never raises."""

    in_flight: int

    def add(self, method: bytes, route: str, status: int, seconds: float) -> None:
        """`route` is the pattern of the operation (`/containers/{id}/json`), empty where the path means none."""


class CountedEdge(ApiEdge):
    """`counts` may be None for the sake of those that look on in other ways (`husk.api.edge.observed`)."""

    def __init__(
        self,
        engine: Engine,
        minimum: Version = MINIMUM,
        limits: HttpLimits | None = None,
        counts: Counts | None = None,
    ) -> None:
        super().__init__(engine, minimum, limits)
        self._counts = counts

    def handle(self, request: Request) -> "Answer | Coroutine[Any, Any, Answer] | asyncio.Task[Answer]":
        if (counts := self._counts) is None:
            return super().handle(request)
        begun = perf_counter()
        answer = ApiEdge.handle(self, request)
        place = self._places.get(request.method, request.raw_path) or self._locate(request)
        route = place[1].pattern if type(place) is tuple else ""
        if type(answer) is Response:
            # What nearly all answers are: nobody saw it in flight.
            counts.add(request.method, route, answer.status, perf_counter() - begun)
            return answer
        counts.in_flight += 1
        if isinstance(answer, Answer):
            self._count(counts, request, route, begun, answer)
        elif isinstance(answer, asyncio.Task):
            answer.add_done_callback(lambda task: self._count(counts, request, route, begun, result_of(task)))
        else:
            return self._counted(counts, request, route, begun, answer)
        return answer

    async def _http2(self, request: Request) -> Answer:
        work = super()._http2(request)
        if (counts := self._counts) is None:
            return await work
        counts.in_flight += 1
        return await self._counted(counts, request, BUILDKIT, perf_counter(), work)

    async def _counted(
        self, counts: Counts, request: Request, route: str, begun: float, work: Coroutine[Any, Any, Answer]
    ) -> Answer:
        answer = None
        try:
            answer = await work
            return answer
        finally:
            self._count(counts, request, route, begun, answer)

    def _count(self, counts: Counts, request: Request, route: str, begun: float, answer: Answer | None) -> None:
        counts.in_flight -= 1
        counts.add(request.method, route, status_of(request, answer), perf_counter() - begun)


def result_of(task: "asyncio.Task[Answer]") -> Answer | None:
    """Return the answer of a task that has ended; None where the task has failed."""
    return None if task.cancelled() or task.exception() is not None else task.result()


def status_of(request: Request, answer: Answer | None) -> int:
    """Return the status the client got. Who takes the connection over says 101 or 200; nobody tells which later on."""
    if isinstance(answer, Response | StreamedResponse):
        return answer.status
    if request.begun:
        return 101 if request.has("upgrade") else 200
    return CLIENT_LEFT if request.gone or answer is None else _BROKEN
