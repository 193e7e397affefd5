"""Three missed heartbeats and a node is down; nobody is down before it could say that it is not."""

from husk.swarm.model.heartbeats import GRACE, PERIOD, SHORTEST, Heartbeats, period_of, verdicts
from husk.swarm.model.node import Node, NodeState, NodeStatus


def node(id: str, state: NodeState) -> Node:
    return Node(id=id, version=1, created_at="", updated_at="", status=NodeStatus(state=state))


def test_a_node_is_silent_when_it_has_missed_three_times():
    beats = Heartbeats()
    assert beats.beat("a", 0) and not beats.beat("a", PERIOD) and beats.beat("b", 2 * PERIOD)
    assert beats.next_alarm() == 4 * PERIOD
    assert beats.silent(4 * PERIOD - 1) == []
    assert beats.silent(4 * PERIOD) == ["a"] and set(beats.known) == {"b"}
    assert beats.silent(4 * PERIOD) == [], "it is told once"
    assert beats.beat("a", 9 * PERIOD), "and is news when it comes back"
    beats.forget("b")
    beats.forget("a")
    assert beats.next_alarm() is None


def test_records_say_how_nodes_are():
    nodes = [node("a", "ready"), node("b", "ready"), node("c", "down"), node("d", "down"), node("e", "unknown")]
    found = {verdict.node_id: verdict.state for verdict in verdicts(nodes, {"a", "c", "e"}, GRACE)}
    assert found == {"b": "down", "c": "ready", "e": "ready"}


def test_a_new_leader_waits_before_it_calls_anybody_lost():
    assert verdicts([node("a", "ready"), node("b", "unknown")], {}, GRACE - 1) == []
    assert [verdict.state for verdict in verdicts([node("a", "disconnected")], {}, GRACE)] == ["down"]


def test_each_node_has_the_time_that_it_was_told():
    beats = Heartbeats()
    beats.beat("a", 0, PERIOD)
    beats.beat("b", 0, 2 * PERIOD)
    assert beats.silent(3 * PERIOD) == ["a"] and beats.next_alarm() == 6 * PERIOD
    beats.beat("b", PERIOD, PERIOD // 5)
    assert beats.silent(2 * PERIOD) == ["b"]


def test_what_a_swarm_is_set_to():
    assert [period_of(wanted) for wanted in (0, 1, SHORTEST, 7 * PERIOD)] == [PERIOD, SHORTEST, SHORTEST, 7 * PERIOD]
    nodes = [node("a", "ready")]
    assert verdicts(nodes, {}, GRACE, 2 * GRACE) == [] and len(verdicts(nodes, {}, GRACE // 5, GRACE // 5)) == 1


def test_a_node_that_looks_for_another_manager_is_not_lost():
    nodes = [node("a", "ready"), node("b", "ready"), node("c", "down")]
    assert [verdict.node_id for verdict in verdicts(nodes, {}, GRACE, spared={"a", "c"})] == ["b"]
