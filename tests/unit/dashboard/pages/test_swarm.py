from tests.support.fake_engine import FakeEngine
from tests.unit.dashboard.pages.conftest import Visitor

SERVICE = {
    "ID": "s1",
    "Version": {"Index": 3},
    "UpdatedAt": "2026-01-01T00:00:00Z",
    "ServiceStatus": {"RunningTasks": 1, "DesiredTasks": 2},
    "Spec": {
        "Name": "web",
        "Mode": {"Replicated": {"Replicas": 2}},
        "TaskTemplate": {"ContainerSpec": {"Image": "app:1@sha256:0"}},
    },
}
TASKS = [
    {
        "ID": "old",
        "Slot": 1,
        "NodeID": "n1",
        "DesiredState": "shutdown",
        "Status": {"State": "failed", "Err": "exit 3"},
    },
    {"ID": "new", "Slot": 1, "NodeID": "n1", "DesiredState": "running", "Status": {"State": "running"}},
]


def prepare(engine: FakeEngine, manager: bool = True) -> None:
    engine.answers("GET", "/info", {"Swarm": {"ControlAvailable": manager}})
    engine.answers("GET", "/services", [SERVICE])
    engine.answers("GET", "/services/web", SERVICE)
    engine.answers("GET", "/services/s1", SERVICE)
    engine.answers("GET", "/tasks", TASKS)
    engine.answers(
        "GET", "/nodes", [{"ID": "n1", "Description": {"Hostname": "here"}, "Spec": {}, "Status": {"State": "ready"}}]
    )


async def test_without_a_swarm_pages_say_how_to_get_one(engine: FakeEngine, visitor: Visitor) -> None:
    prepare(engine, manager=False)
    for path in ("/services", "/nodes", "/secrets"):
        assert "docker swarm init" in (await visitor.get(path)).text


async def test_services_tell_their_tasks(engine: FakeEngine, visitor: Visitor) -> None:
    prepare(engine)
    assert "1 of 2" in (await visitor.get("/services")).text
    text = (await visitor.get("/services/web")).text
    assert text.index(">new<") < text.index(">old<") and "exit 3" in text and "here" in text
    assert "here" in (await visitor.get("/nodes")).text


async def test_secrets_are_names_only(engine: FakeEngine, visitor: Visitor) -> None:
    prepare(engine)
    kept = {"ID": "k1", "Spec": {"Name": "password", "Data": "aHVudGVyMg=="}}
    engine.answers("GET", "/secrets", [kept])
    engine.answers("GET", "/configs", [kept])
    text = (await visitor.get("/secrets")).text
    assert "password" in text and "aHVudGVyMg" not in text and "hunter2" not in text


async def test_a_service_is_scaled_to_a_number(engine: FakeEngine, visitor: Visitor) -> None:
    prepare(engine)
    engine.answers("POST", "/services/s1/update", {})
    for wrong in ("", "many", "-1", "99999999"):
        assert (await visitor.post("/services/web/scale", replicas=wrong)).status == 400
    assert (await visitor.post("/services/web/scale", replicas="5")).status == 303
    assert engine.last("POST", "/services/s1/update").document["Mode"] == {"Replicated": {"Replicas": 5}}
