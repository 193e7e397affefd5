"""A sample of what a container uses, in the API's own fields."""

import msgspec

from husk.api.views.container_stats import container_stats
from husk.engine.containers.stats import Measurement, StatsSample
from husk.engine.model.container import ZERO_TIME
from husk.kernel.accounting import CPU, BlockOperation, Interface, MemoryUsage, ResourceUsage
from tests.unit.engine.records import container

USAGE = ResourceUsage(
    cpu=CPU(total=30, kernel=10, user=20, per_cpu=(12, 18), periods=3, throttled_periods=1, throttled=7, host=900),
    memory=MemoryUsage(usage=5, peak=6, failures=2, limit=100, stats={"cache": 1}),
    pids=4,
    pids_limit=9,
    block={"io_service_bytes_recursive": [BlockOperation(8, 0, "read", 4096)]},
    cgroup_v2=True,
)
NOW = Measurement(1_000_000_000, USAGE, {"eth0": Interface(1, 2, 3, 4, 5, 6, 7, 8)})


def shown(sample: StatsSample) -> dict[str, object]:
    decoded: dict[str, object] = msgspec.json.decode(msgspec.json.encode(container_stats(sample)))
    return decoded


def test_every_counter_is_in_its_place() -> None:
    record = container("web")
    answer = container_stats(StatsSample(record, NOW, 500_000_000, CPU(total=10, host=800)))
    assert (answer.id, answer.name) == (record.id, "/web")
    assert (answer.read, answer.preread) == ("1970-01-01T00:00:01.000000000Z", "1970-01-01T00:00:00.500000000Z")
    now, before = answer.cpu_stats, answer.precpu_stats
    assert (now.cpu_usage.total_usage, before.cpu_usage.total_usage) == (30, 10)
    assert (now.cpu_usage.percpu_usage, now.system_cpu_usage, before.system_cpu_usage) == ([12, 18], 900, 800)
    assert (now.throttling_data.periods, now.throttling_data.throttled_time) == (3, 7)
    assert (answer.memory_stats.usage, answer.memory_stats.max_usage, answer.memory_stats.limit) == (5, 6, 100)
    assert (answer.pids_stats.current, answer.pids_stats.limit) == (4, 9)
    (entry,) = answer.blkio_stats.io_service_bytes_recursive or []
    assert (entry.major, entry.minor, entry.op, entry.value) == (8, 0, "read", 4096)
    assert shown(StatsSample(record, NOW))["networks"] == {
        "eth0": {
            "rx_bytes": 1, "rx_packets": 2, "rx_errors": 3, "rx_dropped": 4,
            "tx_bytes": 5, "tx_packets": 6, "tx_errors": 7, "tx_dropped": 8,
        }
    }  # fmt: skip


def test_without_a_reading_before_it_that_one_is_empty() -> None:
    answer = container_stats(StatsSample(container(), NOW))
    assert answer.preread == ZERO_TIME and answer.precpu_stats.cpu_usage.total_usage == 0
    assert answer.cpu_stats.cpu_usage.total_usage == 30


def test_one_that_does_not_run_has_an_empty_sample_without_networks() -> None:
    answer = shown(StatsSample(container("web")))
    assert answer["name"] == "/web" and answer["read"] == ZERO_TIME
    assert "networks" not in answer
    assert answer["pids_stats"] == {}
