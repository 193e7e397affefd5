"""Each container's numbers, with its labels."""

from husk.engine.containers.stats import RunningContainer
from husk.kernel.brief_usage import BriefUsage
from husk.observe.metrics.containers import samples

WITH_NETWORK = RunningContainer("0123456789abcdef", "web", "nginx:1", "/husk/0", 7)
WITHOUT = RunningContainer("fedcba9876543210", "tool", "busybox", "/husk/1", 0)


def test_every_container_has_its_labels_and_numbers() -> None:
    usage = BriefUsage(cpu_ns=1_500_000_000, memory=10, memory_limit=20, pids=3, received=4, sent=5, block_read=6)
    found = {family.name: family.samples for family in samples([(WITH_NETWORK, usage), (WITHOUT, usage)])}
    labels = {"id": "0123456789ab", "name": "web", "image": "nginx:1"}
    assert (found["husk_container_cpu_seconds"][0].labels, found["husk_container_cpu_seconds"][0].value) == (
        labels,
        1.5,
    )
    assert [sample.value for sample in found["husk_container_memory_usage_bytes"]] == [10, 10]
    assert [sample.value for sample in found["husk_container_block_read_bytes"]] == [6, 6]


def test_a_container_on_the_hosts_network_has_no_traffic_of_its_own() -> None:
    found = {family.name: family.samples for family in samples([(WITHOUT, BriefUsage(received=4))])}
    assert found["husk_container_network_receive_bytes"] == []
    assert found["husk_container_network_transmit_bytes"] == []
