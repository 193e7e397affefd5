"""Names mean something to a container according to the networks it is on."""

from ipaddress import IPv4Address

from husk.engine.model.container import TASK_LABEL, Container, Draft, Endpoint
from husk.engine.model.container_config import ContainerConfig, EndpointRequest, HostConfig
from husk.engine.model.network import Network
from husk.engine.networks.endpoints import dns_names, gateway_endpoint, in_order, parse_links
from husk.engine.networks.live import LiveNetwork
from husk.engine.networks.names import addresses_of, names_of, servers
from tests.support.but import but


def container(name: str, addresses: dict[str, str], **request: object) -> Container:
    return Container(
        id=(name.encode().hex() + "0" * 64)[:64],
        name=name,
        created="",
        created_ns=0,
        image_id="",
        config=ContainerConfig(hostname=name + "-host"),
        host_config=HostConfig(network_mode=next(iter(addresses), "none"), dns=["192.0.2.53"]),
        path="sleep",
        args=[],
        endpoints={
            network: Endpoint(
                network_name=network,
                network_id=network,
                ip_address=address,
                gateway="10.0.0.1",
                request=EndpointRequest(**request),  # type: ignore[arg-type]
            )
            for network, address in addresses.items()
        },
    )


def network(name: str, *members: Container) -> LiveNetwork:
    live = LiveNetwork(Network(id=name * 8, name=name, driver="bridge", created=""))
    live.members = {member.id: Draft(member) for member in members}
    return live


WEB = container("web", {"home": "10.0.0.2"}, aliases=["www", "svc"])
SHOP = container("shop", {"home": "10.0.0.3", "lan": "10.1.0.3"}, aliases=["svc"])


def test_each_of_its_names():
    assert dns_names(WEB, WEB.endpoints["home"]) == ["web", "www", "svc", WEB.id[:12], "web-host"]
    home = network("home", WEB, SHOP)
    for name in ("web", "www", WEB.id[:12], "web-host", "web.home"):
        assert addresses_of(SHOP, [home], name) == [IPv4Address("10.0.0.2")], name
    assert addresses_of(SHOP, [home], "svc") == [IPv4Address("10.0.0.2"), IPv4Address("10.0.0.3")]


def test_unknown_names_are_for_others():
    home = network("home", WEB)
    for name in ("", "nobody", "web.lan", "web.home.example", "home"):
        assert addresses_of(WEB, [home], name) is None, name


def test_a_name_with_dots_of_its_own():
    dotted = container("my.app", {"home": "10.0.0.9"})
    home = network("home", dotted, WEB)
    assert addresses_of(WEB, [home], "my.app") == addresses_of(WEB, [home], "my.app.home") == [IPv4Address("10.0.0.9")]


def test_links_are_its_own():
    linker = container("linker", {"home": "10.0.0.4"}, links=["web:db", "shop"])
    home = network("home", WEB, SHOP, linker)
    assert addresses_of(linker, [home], "db") == [IPv4Address("10.0.0.2")]
    assert addresses_of(SHOP, [home], "db") is None
    assert parse_links(["web:db", "/shop", "/a/b:/x/alias"]) == {"db": "web", "shop": "shop", "alias": "a/b"}


def test_the_name_of_an_address_has_the_network_behind_it():
    assert names_of([network("home", WEB)], IPv4Address("10.0.0.2")) == ["web.home"]
    assert names_of([network("home", WEB)], IPv4Address("10.0.0.3")) == []


def test_the_gateway_is_the_first_by_priority_then_by_name():
    both = container("both", {"zulu": "10.0.0.2", "alpha": "10.1.0.2"})
    assert [endpoint.network_name for endpoint in in_order(both)] == ["zulu", "alpha"]
    leading = gateway_endpoint(both)
    assert leading is not None and leading.network_name == "alpha"
    both = but(both, endpoints={**both.endpoints, "zulu": but(both.endpoints["zulu"], request__gw_priority=1)})
    leading = gateway_endpoint(both)
    assert leading is not None and leading.network_name == "zulu"
    nowhere = {name: but(endpoint, gateway="") for name, endpoint in both.endpoints.items()}
    assert gateway_endpoint(but(both, endpoints=nowhere)) is None


def test_who_leads_nowhere_asks_nobody():
    assert servers(WEB) == ["192.0.2.53"]
    inner = container("inner", {"vault": "10.0.0.2"})
    vault = but(inner.endpoints["vault"], gateway="")
    assert servers(but(inner, endpoints={"vault": vault})) == []


def test_endpoints_on_other_hosts_are_known_by_their_names() -> None:
    home = network("home", WEB)
    home.elsewhere = {"svc": {"10.0.0.9": IPv4Address("10.0.0.9")}, "far": {"10.0.0.9": IPv4Address("10.0.0.9")}}
    assert addresses_of(WEB, [home], "far.home") == [IPv4Address("10.0.0.9")]
    assert addresses_of(WEB, [home], "svc") == [IPv4Address("10.0.0.2"), IPv4Address("10.0.0.9")]
    home.services = {"svc": [IPv4Address("10.0.0.100")]}
    assert addresses_of(WEB, [home], "svc") == [IPv4Address("10.0.0.100")]


def test_a_task_that_others_are_not_led_to_has_no_name() -> None:
    task = container("web.1.x", {"home": "10.0.0.5"}, aliases=["tasks.web"])
    task.config.labels[TASK_LABEL] = "x"
    other = container("web.2.y", {"home": "10.0.0.6"}, aliases=["tasks.web"])
    other.config.labels[TASK_LABEL] = "y"
    home = network("home", WEB, task, other)
    both = [IPv4Address("10.0.0.5"), IPv4Address("10.0.0.6")]
    assert addresses_of(WEB, [home], "tasks.web") == both
    assert addresses_of(WEB, [home], "tasks.web", {"y"}.__contains__) == both[1:]
    assert addresses_of(WEB, [home], "web.1.x", {"y"}.__contains__) is None
    assert addresses_of(SHOP, [home], "web", {"y"}.__contains__) == [IPv4Address("10.0.0.2")], "no task of a service"
