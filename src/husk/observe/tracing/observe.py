"""Requests and actions become spans, with the names that OpenTelemetry's semantic conventions have for them.

A span of a request is named by its route, never by its path, and tells neither its query nor its body: they may hold
secrets. What the engine does for a request is below that request's span; what it does later on by itself, as the
restart of a container, is a trace of its own with a link to it.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span as RecordedSpan
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from husk.api.edge.observed import SeenRequest

# Others are what somebody made up.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE"})
_BROKEN = 500
_NAMES = {
    "start": "container start",
    "create": "container create",
    "delete": "container delete",
    "pull": "image pull",
    "build": "image build",
    "build-step": "build step",
}
_FACTS = {"container": "container.id", "image": "container.image.name"}
_LONGEST = 1024
_traceparent = TraceContextTextMapPropagator()


class RequestTraces:
    """A span for each request; a client that has a trace of its own (`traceparent`) finds it there."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def begun(self, seen: SeenRequest) -> None:
        request = seen.request
        head = {name: request.header(name) for name in ("traceparent", "tracestate") if request.has(name)}
        method = request.method.decode(errors="replace")
        known = method in _METHODS
        attributes: dict[str, str] = {
            "http.request.method": method if known else "_OTHER",
            "url.path": _text(request.raw_path.decode(errors="replace")),
            "url.scheme": "https" if "address" in (request.connection.behind or {}) else "http",
            "network.protocol.version": "1.1" if request.head.is_1_1 else "1.0",
            "husk.request_id": request.id,
        }
        if seen.route:
            attributes["http.route"] = seen.route
        if agent := request.header("user-agent"):
            attributes["user_agent.original"] = _text(agent)
        if address := request.connection.peer or (request.connection.behind or {}).get("address"):
            attributes["client.address"] = address
        verb = method if known else "HTTP"
        seen.notes["span"] = self._tracer.start_span(
            f"{verb} {seen.route}" if seen.route else verb,
            context=_traceparent.extract(head, context=Context()),
            kind=SpanKind.SERVER,
            attributes=attributes,
        )

    def entered(self, seen: SeenRequest) -> None:
        """The context is the request's own, and goes with it."""
        context.attach(trace.set_span_in_context(seen.notes["span"]))

    def done(self, seen: SeenRequest) -> None:
        span: Span = seen.notes["span"]
        span.set_attribute("http.response.status_code", seen.status)
        error = seen.error
        if seen.status >= _BROKEN or seen.request.fault:
            span.set_attribute("error.type", str(seen.status))
            span.set_status(Status(StatusCode.ERROR, _text(error)))
        elif error:
            # The client's mistake, which is no error of a server's span.
            span.set_attribute("husk.message", _text(error))
        span.end()


class EngineTraces:
    """A span for each start, pull, build and so on, whoever asked for it."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    @contextmanager
    def action(self, name: str, facts: dict[str, str]) -> Iterator[None]:
        around = trace.get_current_span()
        over = isinstance(around, RecordedSpan) and around.end_time is not None
        span = self._tracer.start_span(
            _NAMES.get(name, name),
            context=Context() if over else None,
            links=[Link(around.get_span_context())] if over else None,
            attributes={_FACTS.get(key, f"husk.{key}"): _text(value) for key, value in facts.items()},
        )
        token = context.attach(trace.set_span_in_context(span))
        try:
            yield
        except BaseException as error:
            span.set_attribute("error.type", type(error).__name__)
            if not isinstance(error, asyncio.CancelledError):
                span.record_exception(error)
            span.set_status(Status(StatusCode.ERROR, _text(str(error) or type(error).__name__)))
            raise
        finally:
            span.end()
            context.detach(token)

    def count(self, name: str, facts: dict[str, str]) -> None:
        trace.get_current_span().add_event(name, facts)


def _text(value: str) -> str:
    """As much of it as is worth sending, and nothing that is no text."""
    return value[:_LONGEST].encode(errors="replace").decode()
