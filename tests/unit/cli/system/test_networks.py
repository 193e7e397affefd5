import pytest

from husk.cli.system.networks import addresses
from husk.errors import InvalidParameter

NONE = {"subnet": (), "gateway": (), "ip_range": (), "aux_address": (), "ipam_driver": "default", "ipam_opt": ()}
NETWORK = {"Id": "ab" * 32, "Name": "back", "Driver": "bridge", "Scope": "local", "EnableIPv4": True}


def test_listing(engine, typed):
    engine.answers("GET", "/networks", [NETWORK, {**NETWORK, "Name": "all"}])
    heading, *rows = typed("network", "ls").out.splitlines()
    assert heading.split() == ["NETWORK", "ID", "NAME", "DRIVER", "SCOPE"]
    assert [row.split()[1] for row in rows] == ["all", "back"]
    assert typed("network", "ls", "--no-trunc", "-q").out.splitlines()[0] == "ab" * 32
    assert typed("network", "ls", "--format", "{{.IPv4}} {{.IPv6}}").out == "true false\n" * 2


def test_create(engine, typed):
    engine.answers("POST", "/networks/create", {"Id": "n1"})
    engine.answers("GET", "/networks/n1", {"Id": "n1", "Name": "back"})
    line = ("--subnet", "10.1.0.0/24", "--gateway", "10.1.0.1", "--internal", "--label", "a=b", "-o", "k=v", "--ipv6")
    assert typed("network", "create", *line, "back").out == "n1\n"
    asked = engine.last("POST", "/networks/create").document
    assert asked["IPAM"]["Config"] == [{"Subnet": "10.1.0.0/24", "Gateway": "10.1.0.1"}]
    assert (asked["Internal"], asked["EnableIPv6"], asked["Labels"]) == (True, True, {"a": "b"})


def test_addresses_belong_to_the_subnet_that_has_them():
    flags = {
        **NONE,
        "subnet": ("10.1.0.0/24", "fd00::/64"),
        "gateway": ("fd00::1", "10.1.0.1"),
        "ip_range": ("10.1.0.128/25",),
        "aux_address": ("router=10.1.0.9",),
    }
    found = addresses(flags)
    assert found is not None and found["Config"] == [
        {
            "Subnet": "10.1.0.0/24",
            "IPRange": "10.1.0.128/25",
            "Gateway": "10.1.0.1",
            "AuxiliaryAddresses": {"router": "10.1.0.9"},
        },
        {"Subnet": "fd00::/64", "Gateway": "fd00::1"},
    ]
    assert addresses(NONE) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"gateway": ("10.1.0.1",)},
        {"subnet": ("10.1.0.0/24",), "gateway": ("10.2.0.1",)},
        {"subnet": ("10.1.0.0/24",), "gateway": ("10.1.0.1", "10.1.0.2")},
        {"subnet": ("10.1.0.0/24",), "gateway": ("x",)},
        {"aux_address": ("x",)},
    ],
)
def test_addresses_that_no_subnet_has(wrong):
    with pytest.raises(InvalidParameter, match=r"--|aux"):
        addresses({**NONE, **wrong})


def test_connect_and_disconnect(engine, typed):
    engine.answers("GET", "/networks/back", NETWORK)
    engine.answers("POST", f"/networks/{NETWORK['Id']}/connect", None)
    engine.answers("POST", f"/networks/{NETWORK['Id']}/disconnect", None)
    assert typed("network", "connect", "--alias", "db", "--ip", "10.1.0.5", "back", "web").code == 0
    asked = engine.last("POST", f"/networks/{NETWORK['Id']}/connect").document
    assert asked["Container"] == "web" and asked["EndpointConfig"]["Aliases"] == ["db"]
    assert typed("network", "disconnect", "-f", "back", "web").code == 0
    assert engine.last("POST", f"/networks/{NETWORK['Id']}/disconnect").document["Force"] is True
