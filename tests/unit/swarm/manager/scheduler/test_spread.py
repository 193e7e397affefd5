"""Tasks are spread over nodes, and over what nodes have in common."""

from collections import Counter, defaultdict

from husk.swarm.manager.scheduler.spread import preferred_labels, tree
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import Placement
from husk.swarm.model.usage import NodeUsage, TaskUsage
from tests.unit.swarm.manager.test_planner import START, make_task


class Nodes:
    def __init__(self, *nodes: NodeFacts) -> None:
        self.nodes = nodes
        self.rooms: defaultdict[str, NodeUsage] = defaultdict(NodeUsage)
        self.full: set[str] = set()

    def take(self, node: NodeFacts) -> bool:
        if node.id in self.full:
            return False
        self.rooms[node.id].add(TaskUsage(make_task(1)))
        return True

    def choose(self, number: int, *labels: str) -> list[str]:
        choices = tree(self.nodes, self.rooms, "s", 1, labels, START)
        found = [choices.choose(self.take) for _ in range(number)]
        return [node.id for node in found if node is not None]


def node(id: str, **labels: str) -> NodeFacts:
    return NodeFacts(id=id, hostname=id, labels=labels)


def test_each_node_gets_as_many_as_the_others():
    assert Counter(Nodes(node("a"), node("b"), node("c")).choose(7)) == {"a": 3, "b": 2, "c": 2}


def test_tasks_of_the_service_count_more_than_others():
    nodes = Nodes(node("a"), node("b"))
    nodes.rooms["a"].add(TaskUsage(make_task(1)))
    for _ in range(9):
        nodes.rooms["b"].add(TaskUsage(make_task(1, service_id="other")))
    assert nodes.choose(1) == ["b"]
    assert nodes.choose(1) == ["a"], "with as many of its own, the node with fewer in all"


def test_a_node_where_it_failed_often_comes_last():
    nodes = Nodes(node("a"), node("b"))
    for _ in range(5):
        nodes.rooms["a"].failed("s", 1, START)
    assert nodes.choose(3) == ["b", "b", "b"]
    nodes.full.add("b")
    assert nodes.choose(1) == ["a"], "and still is better than none"


def test_preferences_come_before_nodes_level_by_level():
    nodes = Nodes(
        node("a", zone="north", rack="1"),
        node("b", zone="north", rack="1"),
        node("c", zone="north", rack="2"),
        node("d", zone="south", rack="1"),
    )
    assert Counter(nodes.choose(8, "node.labels.zone", "node.labels.rack")) == {"d": 4, "c": 2, "a": 1, "b": 1}


def test_nodes_without_the_label_are_one_branch():
    nodes = Nodes(node("a", zone="north"), node("b"), node("c"))
    assert Counter(nodes.choose(4, "node.labels.zone")) == {"a": 2, "b": 1, "c": 1}


def test_what_a_branch_cannot_take_others_get_until_all_are_full():
    nodes = Nodes(node("a", zone="north"), node("b", zone="south"))
    nodes.full.add("b")
    assert nodes.choose(2, "node.labels.zone") == ["a", "a"]
    nodes.full.add("a")
    assert nodes.choose(1, "node.labels.zone") == []


def test_what_is_preferred():
    def spread(descriptor: object) -> dict[str, object]:
        return {"Spread": {"SpreadDescriptor": descriptor}}

    placement = Placement(
        preferences=[spread("node.labels.a"), spread("node.id"), {}, spread(3), spread("Engine.Labels.b")]
    )
    assert preferred_labels(placement) == ["node.labels.a", "Engine.Labels.b"]
    assert preferred_labels(None) == []
    engines = Nodes(
        NodeFacts(id="a", hostname="a", engine_labels={"b": "1"}),
        NodeFacts(id="b", hostname="b"),
        NodeFacts(id="c", hostname="c"),
    )
    assert Counter(engines.choose(4, "Engine.Labels.b")) == {"a": 2, "b": 1, "c": 1}


def test_thousands_of_preferences_are_no_thousands_of_levels():
    wanted: list[dict[str, object]] = [
        {"Spread": {"SpreadDescriptor": f"node.labels.l{number}"}} for number in range(100_000)
    ]
    labels = preferred_labels(Placement(preferences=[*wanted[:1] * 1000, *wanted]))
    assert labels == [f"node.labels.l{number}" for number in range(100)]
    nodes = Nodes(
        *(node(str(number), **{f"l{label}": str(label < number) for label in range(100)}) for number in range(100))
    )
    assert len(set(nodes.choose(100, *labels))) > 1
    alike = Nodes(node("a"), node("b"))
    assert sorted(alike.choose(2, *(f"node.labels.l{number}" for number in range(5000)))) == ["a", "b"]
