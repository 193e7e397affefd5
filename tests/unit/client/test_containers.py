import asyncio

import pytest

from husk.api.http.hijack import hijack
from husk.api.http.response import Response, Unanswered, fields
from husk.api.streams.framing import frame
from husk.client.spec import ContainerSpec
from husk.errors import Conflict, NotFound
from tests.support.fake_engine import JSON, failed


@pytest.fixture
def engine(engine):
    """An engine with one container, which writes and ends as soon as its input has ended."""

    async def attach(request):
        stream = hijack(request, b"")
        engine.attached.set()
        await engine.started.wait()
        if "stdin=1" in request.query_text:
            while await stream.read():
                pass
        await stream.write(frame(1, b"o" * 10) + frame(2, b"e" * 10))
        await stream.finish()
        return Unanswered()

    async def start(request):
        engine.started.set()
        return Response(204)

    engine.started, engine.attached = asyncio.Event(), asyncio.Event()
    engine.answers("POST", "/containers/create", {"Id": "c1", "Warnings": []})
    engine.answers("POST", "/containers/c1/attach", attach)
    engine.answers("POST", "/containers/c1/start", start)
    engine.answers("POST", "/containers/c1/wait", {"StatusCode": 4})
    engine.answers("POST", "/containers/c1/kill", None)
    engine.answers("GET", "/containers/c1/json", {"Id": "c1", "Name": "/box", "State": {"OOMKilled": True}})
    engine.answers("DELETE", "/containers/c1", None)
    return engine


def removed(engine):
    return [asked.path for asked in engine.asked if asked.method == "DELETE"]


async def test_running_one_to_its_end(client, engine):
    result = await client.run("busybox", "echo hi", input=b"x", network="none")
    assert (result.exit_code, result.stdout, result.stderr) == (4, b"o" * 10, b"e" * 10)
    assert (result.oom_killed, result.timed_out, result.truncated) == (True, False, False)
    created = engine.last("POST", "/containers/create").document
    assert (created["Cmd"], created["OpenStdin"]) == (["echo", "hi"], True)
    assert created["HostConfig"] == {"NetworkMode": "none", "LogConfig": {"Type": "none", "Config": {}}}
    assert removed(engine) == ["/containers/c1"]


async def test_with_a_husk_of_before_runs_in_one_call_it_goes_by_itself_and_its_end_tells_all(client, engine):
    engine.answers("POST", "/containers/run", failed(404, "page not found"))
    engine.answers("GET", "/_ping", Response(200, b"OK", fields({"Api-Version": "1.51", "Server": "Husk/1 (linux)"})))
    engine.answers("POST", "/containers/c1/wait", {"StatusCode": 137, "OOMKilled": True})
    result = await client.run("busybox", "echo hi")
    assert (result.exit_code, result.oom_killed) == (137, True)
    assert engine.last("POST", "/containers/create").document["HostConfig"]["AutoRemove"] is True
    assert engine.last("POST", "/containers/c1/wait").query == {"condition": "removed"}
    paths = [asked.path for asked in engine.asked]
    assert paths.index("/containers/c1/wait") < paths.index("/containers/c1/start")
    assert (removed(engine), "/containers/c1/json" in paths) == ([], False)


async def test_one_that_starts_again_does_not_go_by_itself(client, engine):
    engine.answers("GET", "/_ping", Response(200, b"OK", fields({"Api-Version": "1.51", "Server": "Husk/1 (linux)"})))
    await client.run("busybox", restart="on-failure:1")
    assert "AutoRemove" not in engine.last("POST", "/containers/create").document["HostConfig"]
    assert removed(engine) == ["/containers/c1"]


async def test_of_endless_output_so_much_is_kept(client, engine):
    result = await client.run("busybox", max_output=4)
    assert (result.stdout, result.stderr, result.truncated) == (b"oooo", b"eeee", True)


async def test_its_time_is_over(client, engine):
    never = asyncio.Event()

    async def attach(request):
        stream = hijack(request, b"")
        await stream.write(frame(1, b"begun"))
        await never.wait()
        return Unanswered()

    engine.answers("POST", "/containers/c1/attach", attach)
    result = await client.run("busybox", timeout=1)
    assert (result.timed_out, result.stdout, result.ok) == (True, b"begun", False)
    assert engine.last("POST", "/containers/c1/kill")
    assert removed(engine) == ["/containers/c1"]


async def test_a_specification_may_be_given_whole(client, engine):
    spec = ContainerSpec(image="busybox", command=["a"], labels={"x": "y"}, log_driver="local")
    await client.run(spec, ["b"])
    created = engine.last("POST", "/containers/create").document
    assert (created["Cmd"], created["Labels"]) == (["b"], {"x": "y"})
    assert created["HostConfig"]["LogConfig"]["Type"] == "local"


async def test_for_the_length_of_a_block(client, engine):
    async with client.container("busybox", name="box") as box:
        assert box.name == "box"
        assert engine.started.is_set()
        assert removed(engine) == []
    assert removed(engine) == ["/containers/c1"]
    assert engine.last("POST", "/containers/create").query == {"name": "box"}


async def test_one_that_does_not_start_is_not_left(client, engine):
    engine.answers("POST", "/containers/c1/start", failed(409, "port is taken"))
    with pytest.raises(Conflict, match="port is taken"):
        async with client.container("busybox"):
            pass
    with pytest.raises(Conflict, match="port is taken"):
        await client.run("busybox")
    assert removed(engine) == ["/containers/c1"] * 2


async def test_one_that_was_removed_meanwhile(client, engine):
    engine.answers("DELETE", "/containers/c1", failed(404, "No such container: c1"))
    async with client.container("busybox"):
        pass


async def test_an_image_that_is_missing_is_pulled(client, engine):
    engine.answers("POST", "/containers/create", failed(404, "No such image: busybox:latest"), {"Id": "c1"})
    engine.answers("GET", "/images/busybox/json", failed(404, "No such image"), {"Id": "sha256:1"})
    engine.answers("POST", "/images/create", Response(200, b'{"status":"Done"}\n', JSON))
    assert (await client.containers.create("busybox")).id == "c1"


async def test_nothing_is_pulled_for_another_thing_that_is_missing(client, engine):
    engine.answers("POST", "/containers/create", failed(404, "network mine not found"))
    engine.answers("GET", "/images/busybox/json", {"Id": "sha256:1"})
    with pytest.raises(NotFound, match="network mine"):
        await client.containers.create("busybox", network="mine")
    engine.answers("POST", "/containers/create", failed(404, "No such image: busybox:latest"))
    with pytest.raises(NotFound, match="No such image"):
        await client.containers.create("busybox", pull="never")


async def test_who_is_cancelled_leaves_no_container(client, engine):
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def create(request):
        begun.set()
        await go_on.wait()
        return Response(201, b'{"Id": "c1"}', JSON)

    engine.answers("POST", "/containers/create", create)
    creating = asyncio.get_running_loop().create_task(client.containers.create("busybox"))
    await begun.wait()
    creating.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await creating
    assert removed(engine) == ["/containers/c1"]


async def test_finding_them(client, engine):
    engine.answers("GET", "/containers/json", [{"Id": "c1", "Names": ["/box"]}])
    assert [box.name for box in await client.containers.list(all=True, filters={"label": "a"})] == ["box"]
    assert engine.last("GET", "/containers/json").query == {"all": "1", "size": "0", "filters": '{"label":["a"]}'}
    assert (await client.containers.get("c1")).name == "box"


async def test_pruning(client, engine):
    engine.answers("POST", "/containers/prune", {"ContainersDeleted": ["c1"], "SpaceReclaimed": 5})
    assert (await client.containers.prune({"until": "1h"}))["SpaceReclaimed"] == 5
