"""Networks: with their settings, with other addresses where theirs are taken, and not those that every engine has."""

from husk.api.http.response import Response
from husk.cli.migrate.networks import bring_networks

INNER = {
    "Id": "n1",
    "Name": "inner",
    "Driver": "bridge",
    "Internal": True,
    "Labels": {"a": "b"},
    "Options": {"com.docker.network.bridge.name": "br7", "com.docker.network.driver.mtu": "1400"},
    "IPAM": {"Config": [{"Subnet": "10.9.0.0/24", "Gateway": "10.9.0.1", "IPRange": ""}]},
}


async def test_with_its_settings(engines, capfd) -> None:
    others = [{"Name": "bridge"}, {"Name": "old"}, {"Name": "far", "Scope": "swarm"}]
    engines.there.answers("GET", "/networks", [INNER, *others])
    engines.here.answers("GET", "/networks", [{"Name": "old"}])
    engines.here.answers("POST", "/networks/create", {"Id": "n9"})
    engines.here.answers("GET", "/networks/n9", {"Id": "n9"})
    await bring_networks(engines.source, engines.target, engines.report)
    asked = engines.here.last("POST", "/networks/create").document
    assert asked["IPAM"] == {"Config": [{"Subnet": "10.9.0.0/24", "Gateway": "10.9.0.1"}]}
    assert asked["Options"] == {"com.docker.network.driver.mtu": "1400"} and asked["Internal"]
    told = capfd.readouterr().out.splitlines()
    assert told == ["network inner", "network old: is here", "network far: left out: it is a swarm's"]


async def test_addresses_that_are_taken(engines, capfd) -> None:
    engines.there.answers("GET", "/networks", [INNER])
    engines.here.answers("GET", "/networks", [])
    taken = Response(403, b'{"message": "Pool overlaps"}')
    engines.here.answers("POST", "/networks/create", taken, {"Id": "n9"})
    engines.here.answers("GET", "/networks/n9", {"Id": "n9"})
    await bring_networks(engines.source, engines.target, engines.report)
    assert "IPAM" not in engines.here.last("POST", "/networks/create").document
    assert capfd.readouterr().out == "network inner, with other addresses than 10.9.0.0/24: Pool overlaps\n"


async def test_one_that_cannot_be_made(engines, capfd) -> None:
    engines.there.answers("GET", "/networks", [{**INNER, "IPAM": None}])
    engines.here.answers("GET", "/networks", [])
    engines.here.answers("POST", "/networks/create", Response(400, b'{"message": "no such driver"}'))
    await bring_networks(engines.source, engines.target, engines.report)
    assert engines.report.failures == 1 and "FAILED: no such driver" in capfd.readouterr().out
