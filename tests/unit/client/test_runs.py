import asyncio

import pytest

from husk.api.http.response import Response, StreamedResponse, fields
from husk.api.streams.framing import frame
from husk.client.ending import Ending
from husk.client.runs import MOST_INPUT, CapturedOutput
from husk.errors import Conflict
from tests.support.fake_engine import JSON, failed

HEAD = fields({"Content-Type": "application/vnd.docker.multiplexed-stream", "X-Husk-Container": "c1"})
END = frame(3, b'{"StatusCode":4,"OOMKilled":true}')


@pytest.fixture
def engine(engine):
    """A Husk whose containers write, and end."""
    engine.answers("GET", "/_ping", Response(200, b"OK", fields({"Api-Version": "1.51", "Server": "Husk/1 (linux)"})))
    engine.answers("POST", "/containers/run", Response(200, frame(1, b"out") + frame(2, b"err") + END, HEAD))
    engine.answers("POST", "/containers/c1/kill", None)
    engine.answers("DELETE", "/containers/c1", None)
    return engine


def asked(engine):
    return [f"{each.method} {each.path}" for each in engine.asked if each.path != "/_ping"]


def until_killed(engine, *pieces):
    """A container that writes these, and ends when it is killed."""
    killed = asyncio.Event()

    async def run(request):
        response = StreamedResponse(request, HEAD)
        for piece in pieces:
            await response.write(piece)
        await killed.wait()
        await response.write(frame(3, b'{"StatusCode":137}'))
        await response.write_eof()
        return response

    async def kill(request):
        killed.set()
        return Response(204)

    engine.answers("POST", "/containers/run", run)
    engine.answers("POST", "/containers/c1/kill", kill)


async def test_all_is_asked_for_in_one_call_and_its_connection_is_used_again(client, engine):
    for _ in range(2):
        result = await client.run("busybox", "cat", input=b"x", name="box")
        assert (result.exit_code, result.stdout, result.stderr, result.oom_killed) == (4, b"out", b"err", True)
    assert asked(engine) == ["POST /containers/run"] * 2
    assert engine.connections == 1
    document = engine.last("POST", "/containers/run").document
    assert (document["Input"], document["OpenStdin"], document["HostConfig"]["AutoRemove"]) == ("eA==", True, True)
    assert engine.last("POST", "/containers/run").query == {"name": "box"}


async def test_its_time_is_over(client, engine):
    until_killed(engine, frame(1, b"begun"))
    result = await client.run("busybox", timeout=1)
    assert (result.timed_out, result.stdout, result.exit_code) == (True, b"begun", 137)
    assert asked(engine) == ["POST /containers/run", "POST /containers/c1/kill"]


async def test_it_is_killed_when_it_writes_too_much(client, engine):
    until_killed(engine, frame(1, b"x" * 100), frame(2, b"y"))
    result = await client.run("busybox", max_output=10, kill_at_max_output=True)
    assert (result.stdout, result.truncated, result.exit_code) == (b"x" * 10, True, 137)


async def test_one_that_does_not_start(client, engine):
    engine.answers("POST", "/containers/run", failed(409, "port is taken"))
    with pytest.raises(Conflict, match="port is taken"):
        await client.run("busybox")
    assert asked(engine) == ["POST /containers/run"]


async def test_an_image_that_is_missing_is_pulled(client, engine):
    answer = Response(200, END, HEAD)
    engine.answers("POST", "/containers/run", failed(404, "No such image: busybox:latest"), answer)
    engine.answers("GET", "/images/busybox/json", failed(404, "No such image"), {"Id": "sha256:1"})
    engine.answers("POST", "/images/create", Response(200, b'{"status":"Done"}\n', JSON))
    assert (await client.run("busybox")).exit_code == 4


@pytest.mark.parametrize("moment", ["before it runs", "while it runs"])
async def test_who_is_cancelled_leaves_no_container(client, engine, moment):
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def run(request):
        if moment == "before it runs":
            begun.set()
            await go_on.wait()
        response = StreamedResponse(request, HEAD)
        begun.set()
        await asyncio.Event().wait()
        return response

    engine.answers("POST", "/containers/run", run)
    running = asyncio.get_running_loop().create_task(client.run("busybox"))
    await begun.wait()
    running.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert asked(engine)[-1] == "DELETE /containers/c1"


async def test_much_input_goes_while_it_is_read(client, engine):
    engine.answers("POST", "/containers/create", failed(409, "by the long way"))
    with pytest.raises(Conflict, match="by the long way"):
        await client.run("busybox", input=bytes(MOST_INPUT + 1))


def test_so_much_is_kept_of_each_stream():
    kept = CapturedOutput(3)
    kept.add("stdout", b"ab")
    assert not kept.truncated
    kept.add("stdout", b"cd")
    kept.add("stderr", b"e")
    result = kept.result(Ending(0, False), timed_out=False)
    assert (result.stdout, result.stderr, result.truncated) == (b"abc", b"e", True)
