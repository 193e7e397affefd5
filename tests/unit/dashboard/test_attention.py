from typing import Any

import pytest

from husk.client.client import Client
from husk.client.diagnosis import Reason
from husk.dashboard.attention import MOST, main_reason, needs
from husk.dashboard.grouping import row
from tests.support.fake_engine import FakeEngine

HOST: dict[str, Any] = {"Architecture": "x86_64"}


def listed(name: str, state: str = "exited", status: str = "Exited (3) 1 hour ago", **more: Any) -> dict[str, Any]:
    return {"Id": name * 8, "Names": [f"/{name}"], "State": state, "Status": status, "Image": "i", **more}


def inspected(name: str, code: int = 3, **state: Any) -> dict[str, Any]:
    return {
        "Id": name * 8, "Name": f"/{name}", "Image": "sha256:1", "Config": {"Cmd": ["serve"]},
        "State": {"Status": "exited", "ExitCode": code, **state}, "HostConfig": {"Memory": 8 << 20},
    }  # fmt: skip


@pytest.fixture
def known(engine: FakeEngine) -> FakeEngine:
    engine.answers("GET", "/images/sha256:1/json", {"Id": "sha256:1", "Architecture": "amd64"})
    return engine


async def test_what_is_well_needs_nobody(client: Client, engine: FakeEngine) -> None:
    rows = [row(each, "h") for each in (listed("a", "running", "Up 1 hour"), listed("b", status="Exited (0) now"))]
    assert await needs(client, rows, [], HOST) == ([], 0)
    assert engine.asked == []


async def test_each_has_its_reason_and_what_runs_comes_first(client: Client, known: FakeEngine) -> None:
    known.answers("GET", f"/containers/{'a' * 8}/json", inspected("a"))
    known.answers("GET", f"/containers/{'b' * 8}/json", inspected("b", 137, OOMKilled=True))
    health = {"Status": "unhealthy", "FailingStreak": 4, "Log": [{"Output": "no route"}]}
    known.answers("GET", f"/containers/{'c' * 8}/json", inspected("c", 0, Status="running", Health=health))
    rows = [
        row(each, "h")
        for each in (listed("a", Created=1), listed("b", Created=2), listed("c", "running", "Up 1 hour (unhealthy)"))
    ]
    found = await needs(client, rows, [], HOST)
    assert found.in_all == 3 and [each.name for each in found.first] == ["c", "b", "a"]
    assert "no route" in found.first[0].reason and "ran out of memory: its limit is 8 MiB" in found.first[1].reason
    assert sum(each.path.startswith("/images/") for each in known.asked) == 1


async def test_many_are_counted_and_few_are_asked_about(client: Client, known: FakeEngine) -> None:
    rows = [row(listed(name), "h") for name in "abcdefghij"]
    for name in "abcdefghij":
        known.answers("GET", f"/containers/{name * 8}/json", inspected(name))
    found = await needs(client, rows, [], HOST)
    assert found.in_all == 10 and len(found.first) == MOST
    assert sum(each.path.startswith("/containers/") for each in known.asked) == MOST


async def test_one_that_goes_meanwhile_is_left_out(client: Client, known: FakeEngine) -> None:
    assert (await needs(client, [row(listed("a"), "h")], [], HOST)).first == []


async def test_a_service_without_its_tasks_speaks_for_its_containers(client: Client, known: FakeEngine) -> None:
    known.answers(
        "GET", "/services",
        [{"ID": "s", "Spec": {"Name": "web"}, "ServiceStatus": {"RunningTasks": 1, "DesiredTasks": 3}},
         {"ID": "t", "Spec": {"Name": "well"}, "ServiceStatus": {"RunningTasks": 2, "DesiredTasks": 2}}],
    )  # fmt: skip
    known.answers(
        "GET", "/tasks",
        [{"ID": "1", "CreatedAt": "2026-01-01T00:00:00Z", "Status": {"Err": "old"}},
         {"ID": "2", "CreatedAt": "2026-01-02T00:00:00Z", "Status": {"Err": "task: non-zero exit (1)"}},
         {"ID": "3", "CreatedAt": "2026-01-03T00:00:00Z", "Status": {"State": "starting"}}],
    )  # fmt: skip
    failed = listed("x", Labels={"com.docker.swarm.service.name": "web"})
    found = await needs(client, [row(failed, "h")], await client.services.list(status=True), HOST)
    [need] = found.first
    assert (need.name, need.state, found.in_all) == ("web", "1 of 3", 1)
    assert need.reason.endswith("the newest failure says: task: non-zero exit (1)")


def test_the_reason_that_tells_most() -> None:
    state, poor, bad = Reason("state", "bad", "s"), Reason("image", "poor", "p"), Reason("exit", "bad", "e")
    assert main_reason([state, poor, bad]) == bad
    assert main_reason([state, poor]) == poor
    assert main_reason([state]) == state
    assert main_reason([Reason("state", "ok", "s")]) is None


async def test_many_services_that_lack_tasks_are_counted_and_few_are_asked_about(
    client: Client, known: FakeEngine
) -> None:
    status = {"RunningTasks": 0, "DesiredTasks": 1}
    known.answers(
        "GET", "/services", [{"ID": f"s{n}", "Spec": {"Name": f"s{n}"}, "ServiceStatus": status} for n in range(50)]
    )
    known.answers("GET", "/tasks", [])
    found = await needs(client, [], await client.services.list(status=True), HOST)
    assert found.in_all == 50 and len(found.first) == MOST
    assert sum(each.path.startswith("/tasks") for each in known.asked) == MOST
