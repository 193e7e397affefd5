"""The numbers of each container as Prometheus' samples."""

from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from husk.engine.containers.stats import RunningContainer
from husk.kernel.brief_usage import BriefUsage

_LABELS = ("id", "name", "image")


def samples(found: Sequence[tuple[RunningContainer, BriefUsage]]) -> Iterator[Metric]:
    """Ids are short, as people see them."""
    cpu = CounterMetricFamily(
        "husk_container_cpu_seconds", "Processor time that the container has used", labels=_LABELS
    )
    memory = GaugeMetricFamily(
        "husk_container_memory_usage_bytes",
        "Memory without the cache of files, as docker stats shows it",
        labels=_LABELS,
    )
    limit = GaugeMetricFamily(
        "husk_container_memory_limit_bytes",
        "The most memory it may use: its limit, or what the host has",
        labels=_LABELS,
    )
    pids = GaugeMetricFamily("husk_container_processes", "Processes and threads of the container", labels=_LABELS)
    received = CounterMetricFamily(
        "husk_container_network_receive_bytes", "Bytes that its interfaces have received", labels=_LABELS
    )
    sent = CounterMetricFamily(
        "husk_container_network_transmit_bytes", "Bytes that its interfaces have sent", labels=_LABELS
    )
    read = CounterMetricFamily("husk_container_block_read_bytes", "Bytes read from block devices", labels=_LABELS)
    written = CounterMetricFamily(
        "husk_container_block_written_bytes", "Bytes written to block devices", labels=_LABELS
    )
    for runner, usage in found:
        labels = (runner.id[:12], runner.name, runner.image)
        cpu.add_metric(labels, usage.cpu_ns / 1e9)
        memory.add_metric(labels, usage.memory)
        limit.add_metric(labels, usage.memory_limit)
        pids.add_metric(labels, usage.pids)
        if runner.pid:
            received.add_metric(labels, usage.received)
            sent.add_metric(labels, usage.sent)
        read.add_metric(labels, usage.block_read)
        written.add_metric(labels, usage.block_written)
    yield from (cpu, memory, limit, pids, received, sent, read, written)
