"""Settings of a swarm, first and later, and those that are refused."""

import pytest
from msgspec import convert

from husk.errors import HuskError, InvalidParameter
from husk.swarm.model.settings import CAConfig, Orchestration, SwarmSpec, changed, check, data_path_port, initial


def spec(**values: object) -> SwarmSpec:
    return convert(values, SwarmSpec)


def test_a_new_swarm_has_what_its_client_says_and_the_usual_for_the_rest() -> None:
    made = initial(spec(Raft={"HeartbeatTick": 3}, CAConfig={"NodeCertExpiry": 7 * 10**12}))
    assert (made.raft.heartbeat_tick, made.raft.election_tick, made.raft.snapshot_interval) == (3, 10, 10000)
    assert (made.ca_config.node_cert_expiry, made.dispatcher.heartbeat_period) == (7 * 10**12, 5 * 10**9)
    assert made.history == 5


def test_no_history_can_be_asked_for() -> None:
    asked = spec(Orchestration={"TaskHistoryRetentionLimit": 0})
    assert initial(asked).history == changed(asked).history == 0


def test_an_update_says_everything() -> None:
    assert changed(spec()).orchestration == Orchestration(task_history_retention_limit=0)
    assert changed(spec()).raft.election_tick == 0


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"Name": "other"}, "must be named"),
        ({"Dispatcher": {"HeartbeatPeriod": -1}}, "negative duration"),
        ({"CAConfig": {"NodeCertExpiry": 10**9}}, "1h0m0s"),
        ({"CAConfig": {"ExternalCAs": [{"Protocol": ""}]}}, 'invalid protocol: ""'),
        ({"CAConfig": {"ExternalCAs": [{"Protocol": "CFSSL", "URL": "x"}]}}, "not implemented"),
        ({"CAConfig": {"SigningCACert": "x"}}, "at least one valid, reachable external CA"),
        ({"CAConfig": {"SigningCAKey": "x"}}, "the signing CA cert must also be provided"),
    ],
)
def test_what_cannot_be_is_refused(values: dict[str, object], said: str) -> None:
    with pytest.raises(HuskError) as refused:
        check(spec(**values))
    assert said in refused.value.message


def test_what_signs_is_not_shown_again() -> None:
    asked = spec(CAConfig={"ForceRotate": 1, "SigningCACert": "x", "SigningCAKey": "y"})
    check(asked)
    assert changed(asked).ca_config == CAConfig(force_rotate=1)
    assert initial(asked).ca_config == CAConfig(force_rotate=1, node_cert_expiry=90 * 24 * 3600 * 10**9)


@pytest.mark.parametrize(("wanted", "port"), [(0, 4789), (1024, 1024), (49151, 49151)])
def test_a_port_for_traffic_between_hosts(wanted: int, port: int) -> None:
    assert data_path_port(wanted) == port


@pytest.mark.parametrize("wanted", [1, 1023, 49152, 70000, -1])
def test_a_port_that_is_none(wanted: int) -> None:
    with pytest.raises(InvalidParameter):
        data_path_port(wanted)
