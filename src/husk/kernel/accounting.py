"""Usage of a control group: its counters, from cgroupfs v1 and v2, and those of the host and of interfaces.

A file that does not exist (a controller that the host lacks) counts as nothing. All functions are a few reads of files
in memory, quick but not for the event loop: callers run them in a thread.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from husk.kernel import cgroups

_TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
_BLOCK_V1 = {
    "io_service_bytes_recursive": "io_service_bytes_recursive",
    "io_serviced_recursive": "io_serviced_recursive",
    "io_queue_recursive": "io_queued_recursive",
    "io_service_time_recursive": "io_service_time_recursive",
    "io_wait_time_recursive": "io_wait_time_recursive",
    "io_merged_recursive": "io_merged_recursive",
    "io_time_recursive": "time_recursive",
    "sectors_recursive": "sectors_recursive",
}
_V2_OPERATIONS = (("rbytes", "read"), ("wbytes", "write"))


class CPU(msgspec.Struct, frozen=True):
    """Nanoseconds; `host` is what all processors of the host have spent since boot, idle or not."""

    total: int = 0
    kernel: int = 0
    user: int = 0
    per_cpu: tuple[int, ...] = ()
    periods: int = 0
    throttled_periods: int = 0
    throttled: int = 0
    host: int = 0
    online: int = 0


class MemoryUsage(msgspec.Struct, frozen=True):
    usage: int = 0
    peak: int = 0
    failures: int = 0
    limit: int = 0
    stats: Mapping[str, int] = msgspec.field(default_factory=dict)


class BlockOperation(msgspec.Struct, frozen=True):
    major: int
    minor: int
    operation: str
    value: int


class Interface(msgspec.Struct, frozen=True):
    rx_bytes: int
    rx_packets: int
    rx_errors: int
    rx_dropped: int
    tx_bytes: int
    tx_packets: int
    tx_errors: int
    tx_dropped: int


class ResourceUsage(msgspec.Struct, frozen=True):
    """`block` has the API's own names for its counters; those that the kernel does not keep are absent."""

    cpu: CPU
    memory: MemoryUsage
    pids: int
    pids_limit: int
    block: Mapping[str, list[BlockOperation]]
    cgroup_v2: bool


def read_usage(path: str, root: Path = cgroups.ROOT, proc: Path = Path("/proc")) -> ResourceUsage:
    """The counters of the cgroup `path`, which is the same in all trees below `root`."""
    below = path.strip("/")
    if (root / "cgroup.controllers").exists():
        return _read_v2(root / below, proc)
    return _read_v1({name: root / name / below for name in ("cpu", "cpuacct", "memory", "pids", "blkio")}, proc)


def _read_v1(groups: Mapping[str, Path], proc: Path) -> ResourceUsage:
    accounting, memory = groups["cpuacct"], groups["memory"]
    ticks = _table(accounting / "cpuacct.stat")
    throttling = _table(groups["cpu"] / "cpu.stat")
    host, online = _host_cpu(proc)
    cpu = CPU(
        total=_number(accounting / "cpuacct.usage"),
        kernel=ticks.get("system", 0) * _TICK_NS,
        user=ticks.get("user", 0) * _TICK_NS,
        per_cpu=tuple(int(word) for word in _text(accounting / "cpuacct.usage_percpu").split()),
        periods=throttling.get("nr_periods", 0),
        throttled_periods=throttling.get("nr_throttled", 0),
        throttled=throttling.get("throttled_time", 0),
        host=host,
        online=online,
    )
    return ResourceUsage(
        cpu=cpu,
        memory=MemoryUsage(
            usage=_number(memory / "memory.usage_in_bytes"),
            peak=_number(memory / "memory.max_usage_in_bytes"),
            failures=_number(memory / "memory.failcnt"),
            limit=_memory_limit(_number(memory / "memory.limit_in_bytes"), proc),
            stats=_table(memory / "memory.stat"),
        ),
        pids=_number(groups["pids"] / "pids.current"),
        pids_limit=_number(groups["pids"] / "pids.max"),
        block={name: _block_v1(groups["blkio"], file) for name, file in _BLOCK_V1.items()},
        cgroup_v2=False,
    )


def _read_v2(group: Path, proc: Path) -> ResourceUsage:
    stat = _table(group / "cpu.stat")
    host, online = _host_cpu(proc)
    cpu = CPU(
        total=stat.get("usage_usec", 0) * 1000,
        kernel=stat.get("system_usec", 0) * 1000,
        user=stat.get("user_usec", 0) * 1000,
        periods=stat.get("nr_periods", 0),
        throttled_periods=stat.get("nr_throttled", 0),
        throttled=stat.get("throttled_usec", 0) * 1000,
        host=host,
        online=online,
    )
    return ResourceUsage(
        cpu=cpu,
        memory=MemoryUsage(
            usage=_number(group / "memory.current"),
            limit=_memory_limit(_number(group / "memory.max"), proc),
            stats=_table(group / "memory.stat"),
        ),
        pids=_number(group / "pids.current"),
        pids_limit=_number(group / "pids.max"),
        block={"io_service_bytes_recursive": _block_v2(_text(group / "io.stat"))},
        cgroup_v2=True,
    )


def _block_v1(group: Path, name: str) -> list[BlockOperation]:
    """The counters of whichever scheduler keeps them; the throttling layer sees all that no scheduler does."""
    for prefix in ("blkio.", "blkio.bfq.", "blkio.throttle."):
        if found := parse_block_v1(_text(group / (prefix + name))):
            return found
    return []


def parse_block_v1(text: str) -> list[BlockOperation]:
    """Lines `8:0 Read 4096`, or without an operation; the last line is a sum."""
    found = []
    for line in text.splitlines():
        device, *rest = line.split()
        major, colon, minor = device.partition(":")
        if colon and rest:
            operation = rest[0].lower() if len(rest) == 2 else ""
            found.append(BlockOperation(int(major), int(minor), operation, int(rest[-1])))
    return found


def _block_v2(text: str) -> list[BlockOperation]:
    """Lines `8:0 rbytes=4096 wbytes=0 rios=1 ...`."""
    found = []
    for line in text.splitlines():
        device, *words = line.split()
        major, colon, minor = device.partition(":")
        values = dict(word.split("=", 1) for word in words if "=" in word)
        if colon:
            found += [
                BlockOperation(int(major), int(minor), operation, int(values[key]))
                for key, operation in _V2_OPERATIONS
                if key in values
            ]
    return found


def read_interfaces(pid: int, proc: Path = Path("/proc")) -> dict[str, Interface]:
    """The counters of the network interfaces that a process has, but for its loopback."""
    return parse_interfaces(_text(proc / str(pid) / "net" / "dev"))


def parse_interfaces(text: str) -> dict[str, Interface]:
    """The text of /proc/net/dev: per interface eight numbers of what came in, and eight of what went out."""
    found = {}
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(":")
        numbers = [int(word) for word in rest.split()]
        if name.strip() != "lo" and len(numbers) >= 12:
            found[name.strip()] = Interface(*numbers[0:4], *numbers[8:12])
    return found


def _host_cpu(proc: Path) -> tuple[int, int]:
    """(nanoseconds of all processors, how many there are), as dockerd counts: without time spent for guests."""
    total = online = 0
    for line in _text(proc / "stat").splitlines():
        if line.startswith("cpu "):
            total = sum(int(word) for word in line.split()[1:8]) * _TICK_NS
        elif line.startswith("cpu"):
            online += 1
    return total, online


def _memory_limit(limit: int, proc: Path) -> int:
    """No limit, or one above what the host has, is what the host has."""
    for line in _text(proc / "meminfo").splitlines():
        if line.startswith("MemTotal:"):
            available = int(line.split()[1]) * 1024
            return min(limit, available) if limit else available
    return limit


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _number(path: Path) -> int:
    text = _text(path).strip()
    return int(text) if text.isascii() and text.isdigit() else 0


def _table(path: Path) -> dict[str, int]:
    words = (line.split() for line in _text(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isascii() and pair[1].isdigit()}
