from typing import Any

import pytest

from husk.api.http.response import Response, fields
from husk.api.streams.framing import frame
from husk.client.output import MULTIPLEXED
from husk.client.service_spec import ServiceSpec
from husk.client.services import Service, Task
from husk.errors import InvalidParameter, SystemFault
from tests.support.fake_engine import failed

KNOWN: dict[str, Any] = {
    "ID": "s1",
    "Version": {"Index": 7},
    "Spec": {
        "Name": "web",
        "Labels": {"l": "1"},
        "TaskTemplate": {"ContainerSpec": {"Image": "a:1"}, "ForceUpdate": 2},
        "Mode": {"Replicated": {"Replicas": 3}},
    },
}
TASK = {
    "ID": "t1",
    "ServiceID": "s1",
    "Slot": 2,
    "DesiredState": "running",
    "Status": {"State": "failed", "Err": "oh", "ContainerStatus": {"ContainerID": "c1"}},
}


@pytest.fixture
def service(calls, engine):
    engine.answers("GET", "/services/s1", KNOWN)
    engine.answers("POST", "/services/s1/update", {"Warnings": None})
    return Service(calls, KNOWN)


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))


def updated(engine):
    return engine.last("POST", "/services/s1/update")


async def test_a_new_one(client, engine):
    engine.answers("POST", "/services/create", {"ID": "s1"})
    engine.answers("GET", "/services/s1", KNOWN)
    service = await client.services.create("a:1", "sleep 1", name="web", replicas=3, auth={"username": "me"})
    assert (service.name, service.labels, service.replicas, service.version) == ("web", {"l": "1"}, 3, 7)
    assert repr(service) == "<Service s1 web>"
    asked = engine.last("POST", "/services/create")
    assert asked.document["TaskTemplate"]["ContainerSpec"] == {"Image": "a:1", "Args": ["sleep", "1"]}
    assert "x-registry-auth" in asked.headers
    await client.services.create(ServiceSpec(image="b"))
    assert engine.last("POST", "/services/create").document["TaskTemplate"]["ContainerSpec"] == {"Image": "b"}


async def test_a_word_that_is_not_known(client):
    with pytest.raises(InvalidParameter, match="ServiceSpec lists"):
        await client.services.create("a", colour="red")


async def test_changes(service, engine):
    await service.update(image="a:2", auth={"username": "me"})
    asked = updated(engine)
    assert asked.query == {"version": "7"}
    assert asked.document == {
        **KNOWN["Spec"],
        "TaskTemplate": {"ContainerSpec": {"Image": "a:2"}, "ForceUpdate": 2},
    }
    assert "x-registry-auth" in asked.headers


async def test_changes_of_what_has_changed_meanwhile(service, engine):
    stale, other = failed(500, "rpc error: update out of sequence"), failed(400, "no such image")
    engine.answers("GET", "/services/s1", KNOWN, {**KNOWN, "Version": {"Index": 8}})
    engine.answers("POST", "/services/s1/update", stale, {"Warnings": None})
    await service.scale(5)
    assert updated(engine).query == {"version": "8"}
    engine.answers("POST", "/services/s1/update", other)
    with pytest.raises(InvalidParameter, match="no such image"):
        await service.scale(5)
    engine.answers("POST", "/services/s1/update", stale)
    with pytest.raises(SystemFault, match="out of sequence"):
        await service.scale(5)


async def test_more_or_fewer(service, engine):
    await service.scale(5)
    assert updated(engine).document["Mode"] == {"Replicated": {"Replicas": 5}}


async def test_what_cannot_be_scaled(calls):
    each_node = Service(calls, {"ID": "s1", "Spec": {"Name": "web", "Mode": {"Global": {}}}})
    assert each_node.replicas is None
    with pytest.raises(InvalidParameter, match="one task on each node"):
        await each_node.scale(2)
    assert Service(calls, {"ID": "s", "Spec": {"Mode": {"ReplicatedJob": {"TotalCompletions": 4}}}}).replicas == 4


async def test_back_and_again(service, engine):
    await service.rollback()
    assert updated(engine).query == {"version": "7", "rollback": "previous"}
    await service.force_update()
    assert updated(engine).document["TaskTemplate"]["ForceUpdate"] == 3


async def test_its_tasks(service, engine):
    engine.answers("GET", "/tasks", [TASK])
    (task,) = await service.tasks(filters={"desired-state": "running"})
    assert (task.state, task.desired_state, task.slot, task.error) == ("failed", "running", 2, "oh")
    assert (task.service_id, task.container_id) == ("s1", "c1")
    assert engine.last("GET", "/tasks").query == {"filters": '{"desired-state":["running"],"service":["s1"]}'}


async def test_tasks_of_all(client, engine):
    engine.answers("GET", "/tasks", [TASK])
    engine.answers("GET", "/tasks/t1", {"ID": "t1"})
    assert [task.id for task in await client.tasks.list()] == ["t1"]
    task = await client.tasks.get("t1")
    assert (task.state, task.container_id, task.slot) == ("", "", 0)


async def test_logs(service, calls, engine):
    answer = Response(200, frame(1, b"out\n"), fields({"Content-Type": MULTIPLEXED}))
    engine.answers("GET", "/services/s1/logs", answer)
    engine.answers("GET", "/tasks/t1/logs", answer)
    assert await service.logs(details=True) == b"out\n"
    assert engine.last("GET", "/services/s1/logs").query["details"] == "1"
    assert [line async for line in Task(calls, TASK).logs(tail=1).lines()] == ["out"]


async def test_finding_and_removing(client, service, engine):
    engine.answers("GET", "/services", [KNOWN])
    engine.answers("DELETE", "/services/s1", None)
    assert await client.services.list(filters={"name": "web"}, status=True) == [service]
    assert engine.last("GET", "/services").query == {"filters": '{"name":["web"]}', "status": "1"}
    await client.services.get("s1", insert_defaults=True)
    assert engine.last("GET", "/services/s1").query == {"insertDefaults": "1"}
    await service.remove()
