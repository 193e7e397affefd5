"""A real daemon sends traces to a real receiver of OTLP over HTTP; one that hangs or refuses holds nothing up."""

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.support.building import Builds, Context, needs_buildx
from tests.support.daemon import Daemon
from tests.support.waiting import until

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
# Spans are sent as soon as there are some.
SOON = {"OTEL_BSP_SCHEDULE_DELAY": "50"}


class Receiver:
    """Takes spans at `POST /v1/traces` on the loopback."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.path == "/v1/traces"
                receiver.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def take(self, request: ExportTraceServiceRequest) -> None:
        for group in request.resource_spans:
            named = [each.value.string_value for each in group.resource.attributes if each.key == "service.name"]
            self.services.update(named)
            for scope in group.scope_spans:
                self.spans += scope.spans

    def one(self, name: str, **wanted: object) -> Span:
        """The last span of that name with these attributes, when it has come."""

        def found() -> list[Span]:
            named = [span for span in list(self.spans) if span.name == name]
            return [span for span in named if wanted.items() <= attributes(span).items()]

        return until(found, f"a span {name} {wanted}")[-1]

    def by_id(self, id: bytes) -> Span:
        return until(lambda: [span for span in list(self.spans) if span.span_id == id], "the span")[0]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def attributes(span: Span) -> dict[str, object]:
    return {each.key: getattr(each.value, str(each.value.WhichOneof("value"))) for each in span.attributes}


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture(scope="module")
def traced(receiver: Receiver) -> Iterator[Daemon]:
    with Daemon(environment={"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, **SOON}) as daemon:
        yield daemon


def test_a_start_is_below_its_request_in_the_trace_of_the_client(traced: Daemon, receiver: Receiver) -> None:
    id = traced.docker("create", "--network", "none", "busybox", "sleep", "600").stdout.strip()
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "X-Request-Id": "traced"}
    assert traced.http("POST", f"/v1.41/containers/{id}/start", headers=headers).status == 204
    request = receiver.one("POST /containers/{id}/start", **{"husk.request_id": "traced"})
    start = receiver.one("container start", **{"container.id": id})
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (TRACE, PARENT)
    assert (start.trace_id, start.parent_span_id) == (request.trace_id, request.span_id)
    assert request.kind == Span.SPAN_KIND_SERVER
    assert attributes(request)["http.response.status_code"] == 204
    assert attributes(start)["container.image.name"] == "busybox"
    assert receiver.services == {"husk"}


def test_a_pull_that_fails_is_told_with_its_error(traced: Daemon, receiver: Receiver) -> None:
    traced.http("POST", "/images/create?fromImage=127.0.0.1:1/nothing&tag=x")
    pull = receiver.one("image pull", **{"container.image.name": "127.0.0.1:1/nothing:x"})
    request = receiver.one("POST /images/create")
    assert pull.status.code == request.status.code == Status.STATUS_CODE_ERROR
    assert [event.name for event in pull.events] == ["exception"]
    assert pull.parent_span_id == request.span_id


@pytest.mark.parametrize("buildkit", [False, pytest.param(True, marks=needs_buildx)])
def test_steps_are_below_their_build_without_their_commands(
    traced: Daemon, receiver: Receiver, tmp_path: Path, buildkit: bool
) -> None:
    builds = Builds(traced, Context(tmp_path / "context"), buildkit=buildkit)
    builds.run(f"FROM busybox\nRUN echo hunter2 {buildkit} > /said\n", files={"a": "1"})
    # `[2/2]`: where the base is a step, too.
    step = receiver.one("build step", **{"husk.step": "[2/2] RUN"})
    build = receiver.by_id(step.parent_span_id)
    assert build.name == "image build" and build.trace_id == step.trace_id
    assert build.start_time_unix_nano <= step.start_time_unix_nano <= step.end_time_unix_nano
    assert {event.name for event in build.events} == {"build-step"}
    door = "POST /grpc" if buildkit else "POST /build"
    assert receiver.by_id(build.parent_span_id).name == door
    assert not any("hunter2" in str(span) for span in receiver.spans)
    receiver.spans.clear()


def test_the_last_spans_are_sent_at_the_end(receiver: Receiver) -> None:
    late = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_BSP_SCHEDULE_DELAY": "600000"}
    with Daemon(environment=late) as daemon:
        daemon.http("GET", "/info", headers={"X-Request-Id": "last"})
        assert not [span for span in receiver.spans if attributes(span).get("husk.request_id") == "last"]
        assert daemon.stop() == 0
        receiver.one("GET /info", **{"husk.request_id": "last"})


@pytest.mark.parametrize("answers", [False, True])
def test_a_receiver_that_hangs_or_refuses_holds_nothing_up(answers: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        if answers:
            silent.close()
        with Daemon(environment={"OTEL_EXPORTER_OTLP_ENDPOINT": url, **SOON}) as daemon:
            # More than wait for a receiver at most.
            for _ in range(2500):
                assert daemon.http("GET", "/_ping").status == 200
            assert daemon.docker("run", "--rm", "--network", "none", "busybox", "echo", "hi").stdout == "hi\n"
            assert daemon.stop() == 0
            assert "Traceback" not in daemon.log()


def test_without_the_packages_one_line_says_what_to_do(tmp_path_factory: pytest.TempPathFactory) -> None:
    # A package of that name that is none of theirs comes first.
    hiding = tmp_path_factory.mktemp("hiding")
    (hiding / "opentelemetry").mkdir()
    (hiding / "opentelemetry/__init__.py").write_text("")
    daemon = Daemon(environment={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
    daemon.program_environment["PYTHONPATH"] += f":{hiding}"
    with daemon:
        assert daemon.http("GET", "/_ping").status == 200
        assert daemon.log_path.read_text().count('pip install \\"husk[otel]\\"') == 1
