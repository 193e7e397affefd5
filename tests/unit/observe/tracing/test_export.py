"""Spans tell who we are; a receiver that hangs holds nobody up."""

import threading
from contextlib import AsyncExitStack
from typing import cast

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from husk.observe.tracing.export import end, tracer


@pytest.mark.parametrize(("variable", "name"), [("", "husk"), ("mine", "mine")])
async def test_spans_tell_who_we_are(monkeypatch: pytest.MonkeyPatch, variable: str, name: str) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_SERVICE_NAME", variable)
    async with AsyncExitStack() as parts:
        made = tracer(parts)
        assert made is not None
        span = made.start_span("x")
        assert isinstance(span, ReadableSpan) and span.resource.attributes["service.name"] == name


class Hanging:
    def __init__(self) -> None:
        self.released = threading.Event()

    def shutdown(self) -> None:
        self.released.wait()


async def test_the_end_does_not_wait_for_a_receiver_that_hangs(caplog: pytest.LogCaptureFixture) -> None:
    hanging = Hanging()
    try:
        await end(cast(TracerProvider, hanging), 0.01)
    finally:
        hanging.released.set()
    assert "could not be sent" in caplog.text
