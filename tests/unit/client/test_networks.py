from husk.client.calls import Calls
from husk.client.container import Container
from husk.client.networks import Network

KNOWN = {
    "Id": "n1",
    "Name": "inner",
    "Driver": "bridge",
    "Labels": {"a": "b"},
    "IPAM": {"Config": [{"Subnet": "10.1.0.0/24"}, {}]},
    "Containers": {"c1": {"Name": "box"}},
}


async def test_a_new_one(client, engine):
    engine.answers("POST", "/networks/create", {"Id": "n1"})
    engine.answers("GET", "/networks/n1", KNOWN)
    network = await client.networks.create(
        "inner", subnet="10.1.0.0/24", gateway="10.1.0.1", internal=True, enable_ipv6=False, config_from="base"
    )
    assert (network.name, network.driver, network.labels) == ("inner", "bridge", {"a": "b"})
    assert (network.subnets, network.containers, repr(network)) == (
        ["10.1.0.0/24"],
        {"c1": {"Name": "box"}},
        "<Network n1 inner>",
    )
    assert engine.last("POST", "/networks/create").document == {
        "Name": "inner",
        "Driver": "bridge",
        "IPAM": {"Config": [{"Subnet": "10.1.0.0/24", "Gateway": "10.1.0.1"}]},
        "Internal": True,
        "Attachable": False,
        "Ingress": False,
        "EnableIPv6": False,
        "ConfigOnly": False,
        "ConfigFrom": {"Network": "base"},
    }


async def test_the_whole_of_ipam(client, engine):
    engine.answers("POST", "/networks/create", {"Id": "n1"})
    engine.answers("GET", "/networks/n1", KNOWN)
    await client.networks.create("inner", ipam={"Driver": "default"})
    assert engine.last("POST", "/networks/create").document["IPAM"] == {"Driver": "default"}


async def test_who_is_on_it(client, engine):
    network, box = Network(Calls(engine.dial), KNOWN), Container(Calls(engine.dial), {"Id": "c1"})
    engine.answers("POST", "/networks/n1/connect", None)
    engine.answers("POST", "/networks/n1/disconnect", None)
    await network.connect(box, aliases=["db"], ipv4_address="10.1.0.9")
    wanted = {"Aliases": ["db"], "IPAMConfig": {"IPv4Address": "10.1.0.9"}}
    assert engine.last("POST", "/networks/n1/connect").document == {"Container": "c1", "EndpointConfig": wanted}
    await network.disconnect("box", force=True)
    assert engine.last("POST", "/networks/n1/disconnect").document == {"Container": "box", "Force": True}


async def test_finding_and_removing(client, engine):
    engine.answers("GET", "/networks", [KNOWN])
    engine.answers("DELETE", "/networks/n1", None)
    engine.answers("POST", "/networks/prune", {"NetworksDeleted": ["x"]})
    (network,) = await client.networks.list(names=["inner"], ids=["n"], filters={"driver": "bridge"})
    asked = engine.last("GET", "/networks").query
    assert asked == {"filters": '{"driver":["bridge"],"name":["inner"],"id":["n"]}'}
    await network.remove()
    assert await client.networks.prune() == {"NetworksDeleted": ["x"]}
