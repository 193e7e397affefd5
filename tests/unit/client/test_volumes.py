import asyncio

import pytest

from husk.aio.tasks import Tasks
from husk.api.http.response import Response
from tests.support.fake_engine import JSON

KNOWN = {"Name": "cache", "Driver": "local", "Mountpoint": "/v/cache/_data", "Labels": None}


async def test_a_new_one(client, engine):
    engine.answers("POST", "/volumes/create", KNOWN)
    volume = await client.volumes.create("cache", driver_opts={"type": "tmpfs"}, labels={"a": "b"})
    assert (volume.id, volume.short_id, volume.driver, volume.labels) == ("cache", "cache", "local", {})
    assert (volume.mountpoint, repr(volume)) == ("/v/cache/_data", "<Volume cache>")
    assert engine.last("POST", "/volumes/create").document == {
        "Name": "cache",
        "Driver": "local",
        "DriverOpts": {"type": "tmpfs"},
        "Labels": {"a": "b"},
    }


async def cancel_while_created(client, engine, name):
    heard, answer = asyncio.Event(), asyncio.Event()

    async def slow(request):
        heard.set()
        await answer.wait()
        return Response(201, b'{"Name":"cache"}', JSON)

    engine.answers("POST", "/volumes/create", slow)
    engine.answers("DELETE", "/volumes/cache", None)
    creating = Tasks().spawn(client.volumes.create(name), "test", awaited=True)
    await heard.wait()
    creating.cancel()
    answer.set()
    with pytest.raises(asyncio.CancelledError):
        await creating
    return [asked.path for asked in engine.asked if asked.method == "DELETE"]


async def test_a_new_one_that_nobody_waits_for_goes(client, engine):
    assert await cancel_while_created(client, engine, "") == ["/volumes/cache"]


async def test_one_that_was_there_stays(client, engine):
    engine.answers("GET", "/volumes/cache", KNOWN)
    assert await cancel_while_created(client, engine, "cache") == []


async def test_finding_and_removing(client, engine):
    engine.answers("GET", "/volumes", {"Volumes": [KNOWN], "Warnings": None}, {"Volumes": None})
    engine.answers("DELETE", "/volumes/cache", None)
    engine.answers("POST", "/volumes/prune", {"VolumesDeleted": []})
    (volume,) = await client.volumes.list(filters={"dangling": True})
    assert await client.volumes.list() == []
    await volume.remove(force=True)
    assert engine.last("DELETE", "/volumes/cache").query == {"force": "1"}
    await client.volumes.prune({"all": True})
    assert engine.last("POST", "/volumes/prune").query == {"filters": '{"all":["true"]}'}
