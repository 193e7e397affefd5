"""An engine that is played in a thread, for the client without `await`."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from husk.api.http.hijack import hijack
from husk.api.http.response import Response, Unanswered, fields
from husk.api.streams.framing import frame
from husk.client.client import Client
from husk.client.output import MULTIPLEXED
from husk.library import sync
from tests.support.fake_engine import FakeEngine, failed


async def talking(request):
    stream = hijack(request, b"")
    await stream.write(frame(1, b"one\ntwo\n"))
    await stream.finish()
    return Unanswered()


def answering(engine: FakeEngine) -> None:
    box = {"Id": "c1", "Name": "/box", "State": {"Status": "running"}, "Config": {"Image": "busybox"}}
    engine.answers("GET", "/containers/json", [{"Id": "c1", "Names": ["/box"], "State": "running"}])
    engine.answers("GET", "/containers/c1/json", box)
    engine.answers("POST", "/containers/create", {"Id": "c1"})
    engine.answers("POST", "/containers/c1/start", None)
    engine.answers("DELETE", "/containers/c1", None)
    engine.answers("POST", "/containers/c1/exec", {"Id": "e1"})
    engine.answers("POST", "/exec/e1/start", talking)
    engine.answers("GET", "/exec/e1/json", {"ExitCode": 0, "Pid": 7})
    engine.answers("DELETE", "/exec/e1", None)
    engine.answers("POST", "/containers/c1/attach", talking)
    log = Response(200, frame(1, b"ERROR: one\n"), fields({"Content-Type": MULTIPLEXED}))
    engine.answers("GET", "/containers/c1/logs", log)
    engine.answers("GET", "/containers/none/json", failed(404, "No such container: none"))
    engine.answers("POST", "/networks/n/connect", None)
    engine.answers("GET", "/networks/n", {"Id": "n", "Name": "n"})
    engine.answers("POST", "/containers/c1/wait", {"StatusCode": 3})
    engine.answers("POST", "/images/load", b'{"stream":"Loaded image: x"}\n')
    engine.answers("GET", "/images/x/json", {"Id": "sha256:1", "RepoTags": ["x"]})


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[FakeEngine]:
    made: list[FakeEngine] = []

    @asynccontextmanager
    async def connected(address: str, *, context: str = "") -> AsyncIterator[Client]:
        engine = FakeEngine()
        answering(engine)
        made.append(engine)
        client = Client(engine.dial)
        try:
            yield client
        finally:
            await client.close()
            await engine.close()

    monkeypatch.setattr(sync, "connect", connected)
    return made


@pytest.fixture
def without_await(played: list[FakeEngine]) -> Iterator[sync.SyncClient]:
    with sync.connect_sync("unix:///x") as engine:
        yield engine
