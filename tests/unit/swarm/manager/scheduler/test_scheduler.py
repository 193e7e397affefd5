"""Nodes for tasks that wait: only suitable ones, spread, and room is never given twice."""

from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from husk.engine.model.container_config import DriverConfig, Mount, VolumeOptions
from husk.swarm.manager.scheduler.scheduler import (
    Choices,
    Obstacle,
    explained,
    needs_of,
    no_suitable_node,
    obstacle,
    preferred_labels,
    schedule,
    still_fits,
    tree,
)
from husk.swarm.model.placement import NodeFacts, NodeUsage, TaskUsage, host_ports
from husk.swarm.model.services import (
    Amount,
    ContainerSpec,
    DiscreteResource,
    DriverSpec,
    Empty,
    GenericResource,
    Mode,
    NamedResource,
    NetworkAttachment,
    Placement,
    Platform,
    PortConfig,
    Service,
    Task,
    TaskResources,
    TaskSpec,
)
from tests.unit.swarm.manager.test_planner import START, make_service, make_task

GIB = 1 << 30


def nodes(*facts: NodeFacts) -> dict[str, NodeFacts]:
    return {node.id: node for node in facts}


def node(id: str, **facts: object) -> NodeFacts:
    return NodeFacts(id=id, hostname=id, nano_cpus=4 * 10**9, memory=4 * GIB, **facts)  # type: ignore[arg-type]


def declared(template: TaskSpec | None = None, **changes: object) -> Service:
    service = make_service(1, **changes)
    service.spec.task_template = template or TaskSpec()
    return service


def waiting(number: int, service: Service, **changes: object) -> list[Task]:
    template = service.spec.task_template
    return [make_task(n + 1, "pending", node_id="", spec=template, **changes) for n in range(number)]


def place(service: Service, tasks: list[Task], having: dict[str, NodeFacts]) -> Choices:
    return schedule(service, tasks, having, defaultdict(NodeUsage), START)


def test_tasks_are_spread_and_the_rest_is_told_why_not():
    service = declared(TaskSpec(resources=TaskResources(reservations=Amount(memory_bytes=3 * GIB))))
    having = nodes(node("a"), node("b"), node("c", availability="drain"), node("d", state="down"))
    choices = place(service, waiting(4, service), having)
    assert [node_id for _, node_id in choices.placed] == ["a", "b"]
    reason = "no suitable node (2 nodes not available for new tasks; insufficient resources on 2 nodes)"
    assert [told for _, told in choices.refused] == [reason, reason]


def test_a_host_port_is_given_once_per_node():
    service = declared(ports=[PortConfig(target_port=1, published_port=80, publish_mode="host")])
    choices = place(service, waiting(3, service), nodes(node("a"), node("b")))
    assert sorted(node_id for _, node_id in choices.placed) == ["a", "b"]
    assert choices.refused[0][1] == "no suitable node (host-mode port already in use on 2 nodes)"


def test_max_replicas_per_node():
    service = declared(TaskSpec(placement=Placement(max_replicas=2)))
    choices = place(service, waiting(5, service), nodes(node("a"), node("b")))
    assert Counter(node_id for _, node_id in choices.placed) == {"a": 2, "b": 2}
    assert choices.refused[0][1] == "no suitable node (max replicas per node limit exceed)"


def test_without_nodes():
    service = declared()
    assert place(service, waiting(1, service), {}).refused[0][1] == "no suitable node"


def test_a_global_task_waits_for_its_own_node():
    service = declared(TaskSpec(resources=TaskResources(reservations=Amount(memory_bytes=5 * GIB))))
    service.spec.mode = Mode(global_=Empty())
    large = NodeFacts(id="b", hostname="b", memory=8 * GIB)
    tasks = [make_task(0, "pending", node_id=id, spec=service.spec.task_template) for id in ("a", "b", "gone")]
    choices = place(service, tasks, nodes(node("a"), large))
    assert choices.placed == [(tasks[1], "b")]
    assert choices.refused == [(tasks[0], "insufficient resources on 1 node")]


amounts = st.integers(0, 3)
facts = st.builds(
    lambda number, memory, availability, state, zone: NodeFacts(
        id=str(number), hostname="", memory=memory, availability=availability, state=state, labels={"zone": zone}
    ),
    st.integers(0, 7),
    st.integers(0, 5),
    st.sampled_from(["active", "active", "active", "pause", "drain"]),
    st.sampled_from(["ready", "ready", "ready", "down"]),
    st.sampled_from(["north", "south"]),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(facts, max_size=6),
    st.lists(st.tuples(st.integers(0, 7), amounts), max_size=8),
    st.integers(1, 10),
    amounts,
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_never_on_an_unsuitable_node_and_never_refused_where_one_is_free(
    given_nodes: list[NodeFacts],
    others: list[tuple[int, int]],
    number: int,
    memory: int,
    most: int,
    port: bool,
    north: bool,
    spread: bool,
):
    constraints = ["node.labels.zone==north"] if north else []
    preferences: list[dict[str, object]] = [{"Spread": {"SpreadDescriptor": "node.labels.zone"}}] if spread else []
    template = TaskSpec(
        resources=TaskResources(reservations=Amount(memory_bytes=memory)),
        placement=Placement(constraints=constraints, max_replicas=most, preferences=preferences),
    )
    ports = [PortConfig(target_port=1, published_port=80, publish_mode="host")] if port else []
    service = declared(template, ports=ports)
    having = nodes(*given_nodes)
    rooms: defaultdict[str, NodeUsage] = defaultdict(NodeUsage)
    for where, size in others:
        spec = TaskSpec(resources=TaskResources(reservations=Amount(memory_bytes=size)))
        rooms[str(where)].add(TaskUsage(make_task(1, spec=spec, service_id="other")))
    before = {id: (room.tasks, room.memory) for id, room in rooms.items()}
    tasks = waiting(number, service)
    choices = schedule(service, tasks, having, rooms, START)
    assert {id: (room.tasks, room.memory) for id, room in rooms.items() if id in before} == before
    assert [task for task, _ in choices.placed] + [task for task, _ in choices.refused] == tasks
    for task, node_id in choices.placed:
        assert obstacle(needs_of(service, task), having[node_id], rooms[node_id]) is None
        rooms[node_id].add(TaskUsage(task, host_ports(service)))
    for task, reason in choices.refused:
        assert reason.startswith("no suitable node")
        assert all(obstacle(needs_of(service, task), node, rooms[node.id]) for node in having.values())


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


def spread_node(id: str, **labels: str) -> NodeFacts:
    return NodeFacts(id=id, hostname=id, labels=labels)


def test_each_node_gets_as_many_as_the_others():
    assert Counter(Nodes(spread_node("a"), spread_node("b"), spread_node("c")).choose(7)) == {"a": 3, "b": 2, "c": 2}


def test_tasks_of_the_service_count_more_than_others():
    nodes = Nodes(spread_node("a"), spread_node("b"))
    nodes.rooms["a"].add(TaskUsage(make_task(1)))
    for _ in range(9):
        nodes.rooms["b"].add(TaskUsage(make_task(1, service_id="other")))
    assert nodes.choose(1) == ["b"]
    assert nodes.choose(1) == ["a"], "with as many of its own, the node with fewer in all"


def test_a_node_where_it_failed_often_comes_last():
    nodes = Nodes(spread_node("a"), spread_node("b"))
    for _ in range(5):
        nodes.rooms["a"].failed("s", 1, START)
    assert nodes.choose(3) == ["b", "b", "b"]
    nodes.full.add("b")
    assert nodes.choose(1) == ["a"], "and still is better than none"


def test_preferences_come_before_nodes_level_by_level():
    nodes = Nodes(
        spread_node("a", zone="north", rack="1"),
        spread_node("b", zone="north", rack="1"),
        spread_node("c", zone="north", rack="2"),
        spread_node("d", zone="south", rack="1"),
    )
    assert Counter(nodes.choose(8, "node.labels.zone", "node.labels.rack")) == {
        "d": 4,
        "c": 2,
        "a": 1,
        "b": 1,
    }


def test_nodes_without_the_label_are_one_branch():
    nodes = Nodes(spread_node("a", zone="north"), spread_node("b"), spread_node("c"))
    assert Counter(nodes.choose(4, "node.labels.zone")) == {"a": 2, "b": 1, "c": 1}


def test_what_a_branch_cannot_take_others_get_until_all_are_full():
    nodes = Nodes(spread_node("a", zone="north"), spread_node("b", zone="south"))
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
        *(
            spread_node(str(number), **{f"l{label}": str(label < number) for label in range(100)})
            for number in range(100)
        )
    )
    assert len(set(nodes.choose(100, *labels))) > 1
    alike = Nodes(spread_node("a"), spread_node("b"))
    assert sorted(alike.choose(2, *(f"node.labels.l{number}" for number in range(5000)))) == ["a", "b"]


NODE = NodeFacts(id="n1", hostname="alpha", nano_cpus=2 * 10**9, memory=1 << 30, labels={"zone": "north"})


def why(spec: TaskSpec, node: NodeFacts = NODE, room: NodeUsage | None = None, **service: Any) -> Obstacle | None:
    declared = make_service(**service)
    declared.spec.task_template = spec
    return obstacle(needs_of(declared, make_task(1, "pending", spec=spec)), node, room or NodeUsage())


def reserving(cpus: float = 0, memory: int = 0, *generic: GenericResource) -> TaskSpec:
    amount = Amount(nano_cpus=int(cpus * 10**9), memory_bytes=memory, generic_resources=list(generic))
    return TaskSpec(resources=TaskResources(reservations=amount))


def taken(*tasks: TaskSpec, ports: tuple[tuple[str, int], ...] = ()) -> NodeUsage:
    room = NodeUsage()
    for spec in tasks:
        room.add(TaskUsage(make_task(1, spec=spec), ports))
    return room


def test_room_is_what_others_have_not_reserved():
    room = taken(reserving(1, 1 << 29))
    assert why(reserving(cpus=1), room=room) is None
    assert why(reserving(cpus=1.1), room=room) == "resources"
    assert why(reserving(memory=1 << 29), room=room) is None
    assert why(reserving(memory=(1 << 29) + 1), room=room) == "resources"


def test_a_service_without_reservations_fits_everywhere():
    assert why(TaskSpec(), room=taken(reserving(1000))) is None


def test_generic_resources_are_counted():
    def gpus(number: int) -> GenericResource:
        return GenericResource(discrete_resource_spec=DiscreteResource(kind="gpu", value=number))

    rich = NodeFacts(id="n1", hostname="alpha", generic={"gpu": 3})
    assert why(reserving(0, 0, gpus(1))) == "resources", "a node has what it is said to have"
    assert why(reserving(0, 0, gpus(3)), rich) is None
    assert why(reserving(0, 0, gpus(2)), rich, taken(reserving(0, 0, gpus(2)))) == "resources"
    named = GenericResource(named_resource_spec=NamedResource(kind="gpu", value="one"))
    assert why(reserving(0, 0, named), rich) == "resources"


def test_as_many_per_node_as_allowed():
    spec = TaskSpec(placement=Placement(max_replicas=2))
    assert why(spec, room=taken(spec)) is None
    assert why(spec, room=taken(spec, spec)) == "replicas"


@pytest.mark.parametrize(
    "facts", [{"availability": "pause"}, {"availability": "drain"}, {"state": "down"}, {"state": "disconnected"}]
)
def test_a_node_that_takes_no_tasks(facts: dict[str, str]):
    assert why(TaskSpec(), NodeFacts(id="n", hostname="h", **facts)) == "ready"  # type: ignore[arg-type]


def test_constraints_are_those_of_the_service_now():
    assert why(TaskSpec(placement=Placement(constraints=["node.labels.zone==north"]))) is None
    assert why(TaskSpec(placement=Placement(constraints=["node.labels.zone==south"]))) == "constraints"


def test_a_platform_must_be_the_nodes_own():
    def placed(*platforms: Platform) -> Obstacle | None:
        return why(TaskSpec(placement=Placement(platforms=list(platforms))))

    assert placed() is placed(Platform(architecture="amd64", os="linux")) is placed(Platform(os="linux")) is None
    assert placed(Platform(architecture="arm64", os="linux"), Platform(architecture="x86_64", os="linux")) is None
    assert placed(Platform(architecture="arm64", os="linux")) == "platforms"
    assert placed(Platform(architecture="amd64", os="windows")) == "platforms"


def test_a_port_of_the_node_is_given_once():
    room = taken(TaskSpec(), ports=(("tcp", 80),))
    free = [
        PortConfig(target_port=1, published_port=81, publish_mode="host"),
        PortConfig(protocol="udp", target_port=1, published_port=80, publish_mode="host"),
        PortConfig(target_port=1, published_port=80),
    ]
    assert why(TaskSpec(), room=room, ports=free) is None
    assert why(TaskSpec(), room=room, ports=[PortConfig(published_port=80, publish_mode="host")]) == "ports"


def test_drivers_must_be_on_the_node():
    def with_volume(driver: str) -> TaskSpec:
        options = VolumeOptions(driver_config=DriverConfig(name=driver))
        return TaskSpec(
            container_spec=ContainerSpec(mounts=[Mount(type="volume", target="/a", volume_options=options)])
        )

    node = NodeFacts(id="n", hostname="h", plugins=frozenset({("Log", "json-file"), ("Volume", "cloud")}))
    assert why(with_volume("local"), node) is why(with_volume("cloud"), node) is None
    assert why(with_volume("other"), node) == "plugins"
    assert why(with_volume("other")) is None, "of this node nobody knows what it has"
    assert why(TaskSpec(log_driver=DriverSpec(name="json-file")), node) is None
    assert why(TaskSpec(log_driver=DriverSpec(name="gelf")), node) == "plugins"
    assert why(TaskSpec(log_driver=DriverSpec(name="none")), node) is None


def test_who_is_on_the_swarms_networks_needs_their_driver():
    node = NodeFacts(id="n", hostname="h", plugins=frozenset({("Network", "bridge")}))
    manager = NodeFacts(id="n", hostname="h", plugins=frozenset({("Network", "overlay")}))
    published = PortConfig(target_port=80, published_port=80)
    on_host = PortConfig(target_port=80, published_port=80, publish_mode="host")
    for target in ("host", "none", "bridge"):
        assert why(TaskSpec(networks=[NetworkAttachment(target=target)]), node, ports=[on_host]) is None
    assert why(TaskSpec(networks=[NetworkAttachment(target="id-of-a-network")]), node) == "plugins"
    assert why(TaskSpec(networks=[NetworkAttachment(target="id-of-a-network")]), manager) is None
    assert why(TaskSpec(), node, ports=[published]) == "plugins"
    assert why(TaskSpec(), manager, ports=[published]) is None


def test_a_node_is_full_when_others_came():
    spec = reserving(1)
    spec.placement = Placement(max_replicas=3)
    service = make_service()
    service.spec.task_template = spec
    needs = needs_of(service, make_task(1, "pending", spec=spec))
    assert still_fits(needs, NODE, taken(spec)) is None
    assert still_fits(needs, NODE, taken(spec, spec)) == "resources"


def test_reasons_are_counted_in_the_words_of_dockerd():
    counted: dict[Obstacle, int] = {"resources": 1, "constraints": 2}
    assert no_suitable_node(counted) == (
        "no suitable node (scheduling constraints not satisfied on 2 nodes; insufficient resources on 1 node)"
    )
    assert no_suitable_node({}) == "no suitable node"
    assert explained({"ready": 3, "replicas": 1}) == (
        "3 nodes not available for new tasks; max replicas per node limit exceed"
    )
    assert explained({"platforms": 1, "ports": 1, "plugins": 1}) == (
        "missing plugin on 1 node; unsupported platform on 1 node; host-mode port already in use on 1 node"
    )
