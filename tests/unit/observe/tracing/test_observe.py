"""Spans have routes for names, continue a client's trace, know what failed, and tell no secrets."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import aiohttp
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from husk import errors
from husk.api.edge.observed import ObservedEdge, SeenRequest
from husk.api.edge.server import serve
from husk.api.http.channel import Channel
from husk.api.http.limits import HttpLimits
from husk.api.http.parser import HeadParser
from husk.api.http.request import Request
from husk.observe.tracing.observe import EngineTraces, RequestTraces
from husk.watch import Watch
from tests.unit.api.conftest import engine
from tests.unit.api.fake_engine import FakeEngine
from tests.unit.api.loops import until

if TYPE_CHECKING:
    from husk.composition import Engine

__all__ = ["engine"]
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Traced:
    """An exporter that keeps spans, and what makes them."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = provider.get_tracer("test")
        self.watch = Watch()
        self.watch.watchers = (EngineTraces(self.tracer),)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()


@pytest.fixture
def traced() -> Traced:
    return Traced()


@pytest.fixture
async def client(engine: FakeEngine, traced: Traced, tmp_path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    edge = ObservedEdge(cast("Engine", engine), observers=(RequestTraces(traced.tracer),))
    path = tmp_path / "socket"
    connector = aiohttp.UnixConnector(str(path))
    async with (
        serve(edge, [f"unix://{path}"], ""),
        aiohttp.ClientSession("http://docker", connector=connector) as client,
    ):
        yield client


async def test_a_request_continues_the_trace_of_its_client(client: aiohttp.ClientSession, traced: Traced) -> None:
    headers = {"traceparent": f"00-{TRACE}-{SPAN}-01", "X-Request-Id": "mine", "User-Agent": "docker"}
    await (await client.post("/v1.41/containers/web/start?detachKeys=hunter2", headers=headers)).read()
    await until(lambda: len(traced.spans) == 1)
    (span,) = traced.spans
    assert span.name == "POST /containers/{id}/start"
    assert span.kind is SpanKind.SERVER
    assert f"{span.context.trace_id:032x}" == TRACE
    assert span.parent is not None and f"{span.parent.span_id:016x}" == SPAN
    assert dict(span.attributes or {}) == {
        "http.request.method": "POST",
        "http.route": "/containers/{id}/start",
        "http.response.status_code": 204,
        "url.path": "/v1.41/containers/web/start",
        "url.scheme": "http",
        "network.protocol.version": "1.1",
        "user_agent.original": "docker",
        "husk.request_id": "mine",
    }
    assert span.status.status_code is StatusCode.UNSET


async def test_paths_that_mean_nothing_name_no_span(client: aiohttp.ClientSession, traced: Traced) -> None:
    await (await client.get("/made/up", headers={"traceparent": "nonsense"})).read()
    await until(lambda: len(traced.spans) == 1)
    (span,) = traced.spans
    assert (span.name, span.parent, span.status.status_code) == ("GET", None, StatusCode.UNSET)
    assert (span.attributes or {})["husk.message"] == "page not found"


async def test_actions_are_below_their_request_and_know_what_failed(
    client: aiohttp.ClientSession, traced: Traced, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def start(*_: object, **__: object) -> None:
        with traced.watch.action("start", container="c1"):
            raise errors.SystemFault("no memory")

    monkeypatch.setattr(engine.containers, "start", start)
    assert (await client.post("/containers/web/start")).status == 500
    await until(lambda: len(traced.spans) == 2)
    action, request = traced.spans
    assert action.parent is not None and action.parent.span_id == request.context.span_id
    assert action.name == "container start"
    assert (action.attributes or {})["container.id"] == "c1"
    assert [event.name for event in action.events] == ["exception"]
    for span in (action, request):
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "no memory")


def request_of(method: bytes) -> Request:
    head = HeadParser(HttpLimits()).feed(method + b" / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert head is not None
    return Request(head, Channel())


def test_methods_that_somebody_made_up_name_no_span(traced: Traced) -> None:
    seen = SeenRequest(request_of(b"OPTIONS"), "", "")
    seen.request.method = b"MADEUP"
    observer = RequestTraces(traced.tracer)
    observer.begun(seen)
    observer.done(seen)
    (span,) = traced.spans
    assert (span.name, (span.attributes or {})["http.request.method"]) == ("HTTP", "_OTHER")


def test_what_goes_on_after_its_request_is_a_trace_of_its_own(traced: Traced) -> None:
    with traced.tracer.start_as_current_span("request") as around:
        around.end()
        with traced.watch.action("start"):
            traced.watch.count("build-step", outcome="cached")
    request, action = traced.spans
    assert action.parent is None
    assert [link.context.span_id for link in action.links] == [request.context.span_id]
    assert [event.name for event in action.events] == ["build-step"]


def test_one_that_is_cancelled_says_so(traced: Traced) -> None:
    with pytest.raises(asyncio.CancelledError), traced.watch.action("pull", image="busybox"):
        raise asyncio.CancelledError
    (span,) = traced.spans
    assert (span.status.description, (span.attributes or {})["container.image.name"]) == ("CancelledError", "busybox")
