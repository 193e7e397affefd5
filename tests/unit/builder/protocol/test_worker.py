"""The worker of builds as clients are told of it."""

from typing import Any

from husk.builder.protocol.worker import worker_record
from tests.unit.builder.protocol.fake_builder import FakeBuilder


def test_labels_tell_what_clients_ask_for() -> None:
    builder: Any = FakeBuilder()
    labels = worker_record(builder, "engine", ["172.17.0.1", "fd00::1"]).labels
    assert labels["org.mobyproject.buildkit.worker.snapshotter"] == "overlayfs"
    assert labels["org.mobyproject.buildkit.worker.moby.host-gateway-ip"] == "172.17.0.1"
    assert "org.mobyproject.buildkit.worker.moby.host-gateway-ip" not in worker_record(builder, "engine", []).labels


def test_platforms_and_rules_are_those_of_the_builder() -> None:
    builder: Any = FakeBuilder()
    worker = worker_record(builder, "engine", [])
    assert (worker.id, worker.platforms[0].os) == ("engine", "linux")
    (policy,) = worker.gc_policy
    assert (policy.keep_duration, policy.filters) == (48 * 3600 * 10**9, ["type==source.local"])
