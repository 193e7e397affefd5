"""A sample of what a container uses, as clients see it."""

from msgspec import UNSET, structs

from husk.api.types.container_stats import (
    BlkioEntry,
    BlkioStats,
    ContainerStats,
    CPUStats,
    CPUUsage,
    MemoryStats,
    NetworkStats,
    PidsStats,
    ThrottlingData,
)
from husk.engine.containers.stats import Measurement, StatsSample
from husk.engine.model.clock import rfc3339
from husk.engine.model.container import ZERO_TIME


def container_stats(sample: StatsSample) -> ContainerStats:
    now = sample.now
    answer = ContainerStats(
        id=sample.container.id,
        name="/" + sample.container.name,
        read=rfc3339(now.time_ns) if now else ZERO_TIME,
        cpu_stats=_cpu(sample, before=False),
        memory_stats=_memory(now) if now else MemoryStats(),
        pids_stats=PidsStats(current=now.usage.pids, limit=now.usage.pids_limit) if now else PidsStats(),
        blkio_stats=_block(now) if now else BlkioStats(),
        preread=rfc3339(sample.before_ns) if sample.before_ns else ZERO_TIME,
        precpu_stats=_cpu(sample, before=True),
    )
    if now and now.interfaces is not None:
        answer.networks = _networks(now)
    return answer


def _cpu(sample: StatsSample, before: bool) -> CPUStats:
    now = sample.now.usage.cpu if sample.now else None
    cpu = sample.before if before else now
    if cpu is None:
        return CPUStats(cpu_usage=CPUUsage(), throttling_data=ThrottlingData())
    return CPUStats(
        cpu_usage=CPUUsage(
            total_usage=cpu.total,
            percpu_usage=list(cpu.per_cpu) or UNSET,
            usage_in_kernelmode=cpu.kernel,
            usage_in_usermode=cpu.user,
        ),
        system_cpu_usage=cpu.host or UNSET,
        online_cpus=cpu.online or UNSET,
        throttling_data=ThrottlingData(
            periods=cpu.periods, throttled_periods=cpu.throttled_periods, throttled_time=cpu.throttled
        ),
    )


def _memory(now: Measurement) -> MemoryStats:
    memory = now.usage.memory
    return MemoryStats(
        usage=memory.usage,
        max_usage=memory.peak,
        stats=dict(memory.stats),
        failcnt=memory.failures,
        limit=memory.limit,
    )


def _block(now: Measurement) -> BlkioStats:
    entries = {
        name: [BlkioEntry(major=o.major, minor=o.minor, op=o.operation, value=o.value) for o in operations]
        for name, operations in now.usage.block.items()
    }
    return structs.replace(BlkioStats(), **entries)


def _networks(now: Measurement) -> dict[str, NetworkStats]:
    return {
        name: NetworkStats(
            rx_bytes=counters.rx_bytes,
            rx_packets=counters.rx_packets,
            rx_errors=counters.rx_errors,
            rx_dropped=counters.rx_dropped,
            tx_bytes=counters.tx_bytes,
            tx_packets=counters.tx_packets,
            tx_errors=counters.tx_errors,
            tx_dropped=counters.tx_dropped,
        )
        for name, counters in (now.interfaces or {}).items()
    }
