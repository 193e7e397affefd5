"""Services on a network, and their places there."""

from husk.engine.model.container import Container, Endpoint
from husk.engine.model.network import Network
from husk.swarm.model.services import NetworkAttachment, PortConfig, Service, ServiceSpec, TaskSpec, VirtualIP
from husk.swarm.spec.network_services import Elsewhere, ServiceOnNetwork, TaskOnNetwork, services_on
from tests.support.but import but
from tests.unit.engine.records import container

NETWORK = Network(id="n1", name="back", driver="overlay", created="")


def service(name: str, *networks: str, virtual: str = "", ports: list[PortConfig] | None = None) -> Service:
    template = TaskSpec(networks=[NetworkAttachment(target=network) for network in networks])
    return Service(
        id=f"id-of-{name}",
        version=0,
        created_at="",
        updated_at="",
        spec=ServiceSpec(name=name, task_template=template),
        virtual_ips=[VirtualIP(network_id="n1", addr=virtual)] if virtual else [],
        ports=ports or [],
    )


def task(name: str, **addresses: str) -> Container:
    found = container(name)
    endpoint = Endpoint(network_name="back", network_id="n1", endpoint_id="e", **addresses)  # type: ignore[arg-type]
    found = but(found, endpoints={"back": endpoint})
    return found


def test_a_service_is_shown_with_its_address_its_ports_and_its_tasks() -> None:
    web = service("web", virtual="10.0.0.9/24", ports=[PortConfig(target_port=80, published_port=8080)])
    tasks = [task("web.1", ip_address="10.0.0.3"), task("web.2", ip6_address="fd00::3"), container("elsewhere")]
    assert services_on(NETWORK, [web], {web.id: tasks}) == {
        "web": ServiceOnNetwork(
            "10.0.0.9", ((80, 8080),), (TaskOnNetwork("web.1", "e", "10.0.0.3"), TaskOnNetwork("web.2", "e", "fd00::3"))
        )
    }


def test_one_whose_name_stands_for_its_tasks_has_no_address() -> None:
    assert services_on(NETWORK, [service("web", "n1")], {}) == {"web": ServiceOnNetwork("", (), ())}


def test_one_on_other_networks_is_not_here() -> None:
    assert services_on(NETWORK, [service("web", "n2"), service("alone")], {}) == {}


def test_a_task_on_another_host_is_shown_with_that_host() -> None:
    web, place = service("web", "n1"), task("web.1", ip_address="10.0.0.3").endpoints
    found = services_on(NETWORK, [web], {web.id: [Elsewhere("web.1", place, "192.0.2.2")]})
    assert found["web"].tasks == (TaskOnNetwork("web.1", "e", "10.0.0.3", "192.0.2.2"),)
