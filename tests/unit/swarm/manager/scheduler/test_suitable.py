"""Nodes that can take a task, and the reasons why others cannot."""

from typing import Any

import pytest

from husk.engine.model.container_config import DriverConfig, Mount, VolumeOptions
from husk.swarm.manager.scheduler.suitable import Obstacle, explained, needs_of, no_suitable_node, obstacle, still_fits
from husk.swarm.model.placement import NodeFacts, NodeUsage, TaskUsage
from husk.swarm.model.services import (
    Amount,
    ContainerSpec,
    DiscreteResource,
    DriverSpec,
    GenericResource,
    NamedResource,
    NetworkAttachment,
    Placement,
    Platform,
    PortConfig,
    TaskResources,
    TaskSpec,
)
from tests.unit.swarm.manager.test_planner import make_service, make_task

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
