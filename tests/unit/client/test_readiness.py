import asyncio

import pytest

from husk.api.http.hijack import hijack
from husk.api.http.response import Response, Unanswered, fields
from husk.api.streams.framing import frame
from husk.client import output
from husk.client.container import Container
from husk.client.readiness import until_ready
from husk.errors import Unavailable

FRAMED = fields({"Content-Type": output.MULTIPLEXED})


def state(status: str = "running", **more: object) -> dict[str, object]:
    return {"Id": "c1", "Name": "/box", "State": {"Status": status, "ExitCode": 1, **more}}


@pytest.fixture
def box(calls, engine):
    written = frame(1, b"starting\nready to ") + frame(1, b"serve\n")
    engine.answers("GET", "/containers/c1/logs", Response(200, written, FRAMED))
    engine.answers("GET", "/containers/c1/json", state())
    return Container(calls, state())


async def test_its_port_takes_connections(box, engine):
    async def taken(reader, writer):
        writer.close()

    async with await asyncio.start_server(taken, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        ports = {"80/tcp": [{"HostIp": "0.0.0.0", "HostPort": str(port)}]}
        engine.answers("GET", "/containers/c1/json", {**state(), "NetworkSettings": {"Ports": ports}})
        await until_ready(box, port=80)


async def test_its_log_says_so(box):
    await until_ready(box, log="ready to s.*ve")


async def test_a_command_succeeds(box, engine):
    async def process(request):
        stream = hijack(request, b"")
        await stream.finish()
        return Unanswered()

    engine.answers("POST", "/containers/c1/exec", {"Id": "e1"})
    engine.answers("POST", "/exec/e1/start", process)
    engine.answers("GET", "/exec/e1/json", {"ExitCode": 1}, {"ExitCode": 0})
    await until_ready(box, exec="check")
    assert len([each for each in engine.asked if each.path == "/exec/e1/json"]) == 2


async def test_its_health_test_succeeds(box, engine):
    health = [state(Health={"Status": status}) for status in ("starting", "healthy")]
    engine.answers("GET", "/containers/c1/json", *health)
    await until_ready(box, health=True)


async def test_no_health_test(box):
    with pytest.raises(Unavailable, match="has no health test"):
        await until_ready(box, health=True)


async def test_it_is_told_what_was_waited_for_and_what_was_written(box, engine):
    engine.answers("GET", "/containers/c1/json", state(Health={"Status": "starting"}))
    with pytest.raises(Unavailable, match=r"box is not ready after 0.05 seconds: its health test(.|\n)*ready to serve"):
        await until_ready(box, health=True, timeout=0.05)


async def test_one_that_ends_is_not_waited_for(box, engine):
    engine.answers("GET", "/containers/c1/json", state("exited"))
    with pytest.raises(Unavailable, match="ended with exit code 1 before it was ready: port 80 was never open"):
        await until_ready(box, port=80)
    with pytest.raises(Unavailable, match="no line of its log matched"):
        await until_ready(box, log="never")
