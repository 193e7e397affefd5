"""Counters of control groups, as both versions of the kernel's interface write them."""

from pathlib import Path

import pytest

from husk.kernel.accounting import BlockOperation, Interface, parse_block_v1, parse_interfaces, read_usage

STAT = "cpu  100 0 50 1000 10 0 5 7 0 0\ncpu0 50 0 25 500 5 0 3 4 0 0\ncpu1 50 0 25 500 5 0 2 3 0 0\nintr 1\n"
GIB = 1 << 30


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    write(tmp_path / "proc", {"stat": STAT, "meminfo": "MemTotal:  8388608 kB\nMemFree: 1 kB\n"})
    return tmp_path / "proc"


def write(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_version_1(tmp_path: Path, proc: Path):
    write(
        tmp_path,
        {
            "cpuacct/h/c/cpuacct.usage": "25059481\n",
            "cpuacct/h/c/cpuacct.usage_percpu": "23110609 1948872 \n",
            "cpuacct/h/c/cpuacct.stat": "user 2\nsystem 1\n",
            "cpu/h/c/cpu.stat": "nr_periods 9\nnr_throttled 3\nthrottled_time 77\n",
            "memory/h/c/memory.usage_in_bytes": "602112\n",
            "memory/h/c/memory.max_usage_in_bytes": "3563520\n",
            "memory/h/c/memory.failcnt": "4\n",
            "memory/h/c/memory.limit_in_bytes": "67108864\n",
            "memory/h/c/memory.stat": "cache 0\ntotal_inactive_file 4096\n",
            "pids/h/c/pids.current": "2\n",
            "pids/h/c/pids.max": "20\n",
            "blkio/h/c/blkio.throttle.io_service_bytes_recursive": "8:0 Read 4096\n8:0 Write 0\nTotal 4096\n",
        },
    )
    usage = read_usage("/h/c", tmp_path, proc)
    assert (usage.cpu.total, usage.cpu.per_cpu, usage.cpu.user) == (25059481, (23110609, 1948872), 20_000_000)
    assert (usage.cpu.periods, usage.cpu.throttled_periods, usage.cpu.throttled) == (9, 3, 77)
    assert (usage.cpu.host, usage.cpu.online) == (1165 * 10_000_000, 2)
    assert (usage.memory.usage, usage.memory.peak, usage.memory.failures) == (602112, 3563520, 4)
    assert (usage.memory.limit, usage.memory.stats["total_inactive_file"]) == (67108864, 4096)
    assert (usage.pids, usage.pids_limit) == (2, 20)
    read, written = usage.block["io_service_bytes_recursive"]
    assert (read, written.operation) == (BlockOperation(8, 0, "read", 4096), "write")
    assert usage.block["io_queue_recursive"] == []


def test_version_2(tmp_path: Path, proc: Path):
    write(
        tmp_path,
        {
            "cgroup.controllers": "cpu io memory pids\n",
            "h/c/cpu.stat": "usage_usec 1000\nuser_usec 700\nsystem_usec 300\nnr_periods 1\nnr_throttled 1\n"
            "throttled_usec 5\n",
            "h/c/memory.current": "602112\n",
            "h/c/memory.max": "max\n",
            "h/c/memory.stat": "anon 4096\ninactive_file 8192\n",
            "h/c/pids.current": "3\n",
            "h/c/pids.max": "max\n",
            "h/c/io.stat": "8:0 rbytes=4096 wbytes=512 rios=1 wios=1 dbytes=0 dios=0\n7:0\n",
        },
    )
    usage = read_usage("/h/c", tmp_path, proc)
    assert (usage.cpu.total, usage.cpu.user, usage.cpu.kernel) == (1_000_000, 700_000, 300_000)
    assert (usage.cpu.per_cpu, usage.cpu.throttled) == ((), 5000)
    assert (usage.memory.usage, usage.memory.limit) == (602112, 8 * GIB), "no limit is what the host has"
    assert (usage.pids, usage.pids_limit) == (3, 0)
    assert usage.block == {
        "io_service_bytes_recursive": [BlockOperation(8, 0, "read", 4096), BlockOperation(8, 0, "write", 512)]
    }


def test_a_cgroup_that_is_gone_has_used_nothing(tmp_path: Path, proc: Path):
    usage = read_usage("/h/gone", tmp_path, proc)
    assert (usage.cpu.total, usage.memory.usage, usage.pids) == (0, 0, 0)


def test_block_counters_without_an_operation():
    assert parse_block_v1("8:16 42\n") == [BlockOperation(8, 16, "", 42)]


def test_interfaces_without_the_loopback():
    text = (
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls\n"
        "    lo: 100 1 0 0 0 0 0 0 100 1 0 0 0 0 0 0\n"
        "  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
    )
    assert parse_interfaces(text) == {"eth0": Interface(1, 2, 3, 4, 9, 10, 11, 12)}
    assert parse_interfaces("") == {}
