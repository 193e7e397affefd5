import pytest

from husk.api.http.response import Response, fields
from husk.api.streams.framing import frame
from husk.client.output import MULTIPLEXED
from husk.errors import InvalidParameter, NotFound
from tests.support.fake_engine import failed


def container(name, **more):
    return {"Id": name, "Names": [f"/{name}"], "State": "running", **more}


def log(text):
    written = frame(1, f"2026-01-02T03:04:05Z {text}\n".encode())
    return Response(200, written, fields({"Content-Type": MULTIPLEXED}))


def sample(total, system):
    cpu = {"cpu_usage": {"total_usage": total}, "system_cpu_usage": system, "online_cpus": 2}
    return {"read": "2026-01-02T03:04:05Z", "cpu_stats": cpu, "memory_stats": {"usage": 7}}


@pytest.fixture
def two(engine):
    engine.answers("GET", "/containers/json", [container("a"), container("b")])
    for name in "ab":
        engine.answers("GET", f"/containers/{name}/logs", log(f"ERROR: of {name}"))
        engine.answers("GET", f"/containers/{name}/json", {"Id": name, "Name": f"/{name}"})
    return engine


async def test_logs_of_all_that_run(client, two):
    found = sorted([(entry.container, entry.text, entry.level) async for entry in client.logs()])
    assert found == [("a", "ERROR: of a", "error"), ("b", "ERROR: of b", "error")]


async def test_logs_of_a_project_and_of_those_that_are_named(client, two):
    assert len([entry async for entry in client.logs(project="shop")]) == 2
    asked = two.last("GET", "/containers/json").query
    assert (asked["all"], asked["filters"]) == ("1", '{"label":["com.docker.compose.project=shop"]}')
    assert [entry.container async for entry in client.logs("b")] == ["b"]
    box = await client.containers.get("a")
    assert [entry.container async for entry in client.logs(box, level="error")] == ["a"]


async def test_a_container_that_goes_leaves_the_others_and_an_error_is_told(client, two):
    two.answers("GET", "/containers/a/logs", failed(404, "No such container: a"))
    assert [entry.container async for entry in client.logs()] == ["b"]
    with pytest.raises(InvalidParameter, match="invalid level"):
        _ = [entry async for entry in client.logs(level="loud")]
    two.answers("GET", "/containers/x/json", failed(404, "No such container: x"))
    with pytest.raises(NotFound):
        _ = [entry async for entry in client.logs("x")]


async def test_stats_of_all_again_and_again(client, two):
    two.answers("GET", "/containers/a/stats", sample(100, 1000), sample(300, 2000))
    two.answers("GET", "/containers/b/stats", sample(1, 1), failed(409, "container b is not running"))
    rounds = []
    async for each in client.stats(interval=0):
        rounds.append(each)
        if len(rounds) == 2:
            break
    first, second = rounds
    assert sorted(first) == ["a", "b"] and list(second) == ["a"], "b has ended meanwhile"
    assert (first["a"].cpu_percent, second["a"].cpu_percent, second["a"].memory_usage) == (0, 40, 7)
