import asyncio
from typing import Any

import pytest

from husk.aio.tasks import Tasks
from husk.client.client import Client
from husk.client.stats import stats
from husk.dashboard.live import Message
from husk.dashboard.sampling import ALL, KEPT, Sampler, UsageSample, points, sample, series, together
from tests.support.fake_engine import FakeEngine
from tests.support.waiting import until_async


def measured(second: int, cpu: int, received: int = 0) -> dict[str, Any]:
    return {
        "read": f"2026-01-31T12:00:{second:02d}Z",
        "cpu_stats": {"cpu_usage": {"total_usage": cpu}, "system_cpu_usage": second * 10**9, "online_cpus": 2},
        "memory_stats": {"usage": 5000, "limit": 10000, "stats": {"inactive_file": 1000}},
        "networks": {"eth0": {"rx_bytes": received, "tx_bytes": 0}},
        "pids_stats": {"current": 3},
    }


def test_a_first_sample_has_nothing_to_compare_with() -> None:
    found = sample(stats(measured(1, 0)), None)
    assert (found.cpu, found.received, found.memory, found.limit, found.pids) == (None, None, 4000, 10000, 3)


def test_what_grows_is_told_by_the_second() -> None:
    found = sample(stats(measured(3, 10**9, 5000)), stats(measured(1, 0, 1000)))
    assert found.cpu == 100.0 and found.received == 2000.0 and found.sent == 0.0


def test_counters_that_begin_anew_are_no_negative_rate() -> None:
    assert sample(stats(measured(3, 0, 10)), stats(measured(1, 0, 1000))).received == 0.0


def test_points_of_charts() -> None:
    kept = [
        UsageSample(1.0, None, 10, 20, None, None, None, None, 1),
        UsageSample(2.0, 1.5, 10, 20, 1.0, 2.0, 3.0, 4.0, 1),
    ]
    assert points(kept, "cpu") == "1.5" and points(kept, "network") == "3"
    assert points(kept, "memory") == "10 10" and points(kept, "disk") == "7"
    assert series(kept)["cpu"] == [[1.0, None], [2.0, 1.5]]


def test_what_all_use_together() -> None:
    one = UsageSample(1.0, None, 10, 20, None, 1.0, None, None, 1)
    other = UsageSample(2.0, 1.5, 30, 40, 1.0, 2.0, 3.0, 4.0, 2)
    both = together([one, other])
    assert (both.cpu, both.memory, both.sent, both.written, both.pids) == (1.5, 40, 3.0, 4.0, 3)
    assert together([]).cpu == 0


@pytest.fixture
async def engine() -> FakeEngine:
    found = FakeEngine()
    found.answers("GET", "/containers/json", [{"Id": "a"}, {"Id": "b"}])
    found.answers("GET", "/containers/a/stats", measured(1, 0), measured(12, 10**9), measured(23, 2 * 10**9))
    found.answers("GET", "/containers/b/stats", measured(1, 0))
    return found


async def test_what_somebody_looks_at_is_measured_and_kept(engine: FakeEngine) -> None:
    client, tasks = Client(engine.dial), Tasks()
    sampler = Sampler(client, tasks, quick=0.01)
    try:
        sampler.start()
        one: asyncio.Queue[Message] = asyncio.Queue()
        everything: asyncio.Queue[Message] = asyncio.Queue()
        with sampler.watching("a", one), sampler.watching(ALL, everything):
            async with asyncio.timeout(30):
                name, told = await one.get()
                assert name == "stats" and isinstance(told, dict) and list(told) == ["a"]
                _, told = await everything.get()
                assert isinstance(told, dict) and set(told) == {"a", "b", ALL}
        await until_async(lambda: sampler.latest("a"), "a sample")
        assert 1 <= len(sampler.history("a")) <= KEPT
        known = sampler.measured("a")
        assert known is not None and known.sparks["memory"].startswith("4000")
        assert sampler.history("none") == [] and sampler.latest("none") is None
        asked = engine.last("GET", "/containers/a/stats")
        assert asked.query == {"stream": "0", "one-shot": "1"}
    finally:
        await tasks.cancel_all()
        await client.close()
        await engine.close()


async def test_what_has_gone_is_forgotten(engine: FakeEngine) -> None:
    client, tasks = Client(engine.dial), Tasks()
    sampler = Sampler(client, tasks, slow=0.01)
    try:
        sampler.start()
        await until_async(lambda: sampler.latest("b"), "a sample")
        engine.answers("GET", "/containers/json", [{"Id": "a"}])
        await until_async(lambda: sampler.latest("b") is None, "it is forgotten")
    finally:
        await tasks.cancel_all()
        await client.close()
        await engine.close()


async def test_what_is_no_measurement_does_not_end_the_measuring(engine: FakeEngine) -> None:
    listed = [{"Id": "a"}, {"Id": "b"}]
    engine.answers("GET", "/containers/json", ["no container"], ["no container"], listed)
    client, tasks = Client(engine.dial), Tasks()
    sampler = Sampler(client, tasks, slow=0.01)
    try:
        sampler.start()
        await until_async(lambda: sampler.latest("a"), "a sample", 20)
    finally:
        await tasks.cancel_all()
        await client.close()
        await engine.close()
