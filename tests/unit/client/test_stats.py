from datetime import UTC, datetime

import pytest

from husk.client.stats import stats

READ = {"read": "2026-01-02T03:04:05.123456789Z"}


def cpu(container, system, **more):
    return {"cpu_usage": {"total_usage": container}, "system_cpu_usage": system, **more}


def test_nothing_is_told():
    found = stats(READ)
    assert found.time == datetime(2026, 1, 2, 3, 4, 5, 123457, tzinfo=UTC)
    assert (found.cpu_percent, found.memory_usage, found.memory_percent, found.pids) == (0, 0, 0, 0)
    assert found.attrs is READ


@pytest.mark.parametrize(
    ("now", "before", "percent"),
    [
        (cpu(300, 2000, online_cpus=2), cpu(100, 1000), 40.0),
        (cpu(100, 2000, online_cpus=2), cpu(100, 1000), 0.0),
        (cpu(50, 2000, online_cpus=2), cpu(100, 1000), 0.0),
        (cpu(300, 1000, online_cpus=2), cpu(100, 1000), 0.0),
        (cpu(300, 2000, online_cpus=2), {"cpu_usage": {"total_usage": 0}}, 0.0),
        (
            {"cpu_usage": {"total_usage": 300, "percpu_usage": [1, 2, 3, 4]}, "system_cpu_usage": 2000},
            cpu(100, 1000),
            80.0,
        ),
    ],
)
def test_processors(now, before, percent):
    assert stats({**READ, "cpu_stats": now, "precpu_stats": before}).cpu_percent == percent


@pytest.mark.parametrize(
    ("details", "usage"),
    [
        ({}, 100),
        ({"inactive_file": 40}, 60),
        ({"total_inactive_file": 30, "inactive_file": 40}, 70),
        ({"inactive_file": 200}, 100),
    ],
)
def test_memory_without_what_may_be_forgotten(details, usage):
    found = stats({**READ, "memory_stats": {"usage": 100, "limit": 200, "stats": details}})
    assert (found.memory_usage, found.memory_limit, found.memory_percent) == (usage, 200, usage / 2)


def test_sums_of_what_came_and_went():
    found = stats(
        {
            **READ,
            "networks": {"eth0": {"rx_bytes": 1, "tx_bytes": 2}, "eth1": {"rx_bytes": 10, "tx_bytes": 20}},
            "blkio_stats": {
                "io_service_bytes_recursive": [
                    {"op": "read", "value": 5},
                    {"op": "Read", "value": 6},
                    {"op": "write", "value": 7},
                    {"op": "discard", "value": 8},
                ]
            },
        }
    )
    assert (found.network_received, found.network_sent, found.block_read, found.block_written) == (11, 22, 11, 7)


def test_no_disk_was_used():
    assert stats({**READ, "blkio_stats": {"io_service_bytes_recursive": None}}).block_read == 0
