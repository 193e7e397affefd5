"""The HTTP edge where somebody looks on: traces, the audit log. Without them the daemon has an edge that only counts
(`husk.api.edge.counted`), or the plain `Edge`.

Each observer hears of a request when it begins and when it is answered. Between them it may set context variables
(`entered`), which then count for all that is done for the request.
"""

import asyncio
import contextvars
import time
from collections.abc import Coroutine
from typing import Any, Protocol

import msgspec

from husk.api.edge.counted import BUILDKIT, CountedEdge, Counts, result_of, status_of
from husk.api.http.limits import HttpLimits
from husk.api.http.request import Request
from husk.api.http.response import Answer, Response
from husk.api.versioning import MINIMUM, Version
from husk.composition import Engine
from husk.text.documents import MalformedDocument, decode


class SeenRequest:
    """One request: what it asks for, and what became of it."""

    __slots__ = ("answer", "argument", "begun", "ended", "notes", "request", "route", "status")

    def __init__(self, request: Request, route: str, argument: str) -> None:
        """`route` is the pattern of the operation (`/containers/{id}/json`), empty where the path means none."""
        self.request = request
        self.route = route
        self.argument = argument
        self.begun = time.perf_counter()
        self.ended = 0.0
        self.status = 0
        self.answer: Answer | None = None
        # What observers remember of it, each under its own name.
        self.notes: dict[str, Any] = {}

    @property
    def seconds(self) -> float:
        return self.ended - self.begun

    @property
    def error(self) -> str:
        """The message of the error that the client was told; empty where there was none."""
        if self.request.fault:
            return self.request.fault
        if self.status < 400 or not isinstance(self.answer, Response):
            return ""
        try:
            return decode(self.answer.body, _Told).message
        except MalformedDocument:
            return ""


class _Told(msgspec.Struct):
    """The body of an answer that tells of a failure."""

    message: str = ""


class Observer(Protocol):
    """An observer of requests. It never raises."""

    def begun(self, seen: SeenRequest) -> None: ...

    def entered(self, seen: SeenRequest) -> None: ...

    def done(self, seen: SeenRequest) -> None: ...


class ObservedEdge(CountedEdge):
    def __init__(
        self,
        engine: Engine,
        minimum: Version = MINIMUM,
        limits: HttpLimits | None = None,
        observers: tuple[Observer, ...] = (),
        counts: Counts | None = None,
    ) -> None:
        super().__init__(engine, minimum, limits, counts)
        self._observers = observers

    def handle(self, request: Request) -> "Answer | Coroutine[Any, Any, Answer] | asyncio.Task[Answer]":
        place = self._places.get(request.method, request.raw_path) or self._locate(request)
        if isinstance(place, Response):
            seen = self._begin(SeenRequest(request, "", ""))
            answer = super().handle(request)
            self._end(seen, place)
            return answer
        _, route, argument = place
        seen = self._begin(SeenRequest(request, route.pattern, argument))
        answer = contextvars.copy_context().run(self._enter, seen)
        if isinstance(answer, Answer):
            self._end(seen, answer)
        elif isinstance(answer, asyncio.Task):
            answer.add_done_callback(lambda task: self._end(seen, result_of(task)))
        else:
            return self._watched(seen, answer)
        return answer

    async def _http2(self, request: Request) -> Answer:
        """BuildKit's protocol from the first byte: what `POST /grpc` leads to."""
        return await self._watched(self._begin(SeenRequest(request, BUILDKIT, "")), super()._http2(request))

    def _begin(self, seen: SeenRequest) -> SeenRequest:
        for observer in self._observers:
            observer.begun(seen)
        return seen

    def _enter(self, seen: SeenRequest) -> "Answer | Coroutine[Any, Any, Answer] | asyncio.Task[Answer]":
        for observer in self._observers:
            observer.entered(seen)
        return super().handle(seen.request)

    async def _watched(self, seen: SeenRequest, work: Coroutine[Any, Any, Answer]) -> Answer:
        """This is the request's task: what is entered here counts for all that the handler does."""
        for observer in self._observers:
            observer.entered(seen)
        answer = None
        try:
            answer = await work
            return answer
        finally:
            self._end(seen, answer)

    def _end(self, seen: SeenRequest, answer: Answer | None) -> None:
        seen.ended = time.perf_counter()
        seen.status = status_of(seen.request, answer)
        seen.answer = answer
        for observer in self._observers:
            observer.done(seen)
