import pytest

from husk.cli.containers.networks import networking
from husk.errors import InvalidParameter


def test_a_name_alone_is_the_mode():
    assert networking(["host"], [], "", "", "") == ("host", {})
    assert networking([], [], "", "", "") == ("", {})


def test_flags_belong_to_the_first():
    name, endpoints = networking(["one", "two"], ["a"], "10.0.0.5", "", "02:00:00:00:00:01")
    assert name == "one"
    assert endpoints == {
        "one": {"Aliases": ["a"], "IPAMConfig": {"IPv4Address": "10.0.0.5"}, "MacAddress": "02:00:00:00:00:01"},
        "two": {},
    }
    assert networking([], ["a"], "", "", "") == ("", {"default": {"Aliases": ["a"]}})


def test_all_in_one_word():
    text = "name=n,alias=a,alias=b,ip=10.0.0.2,ip6=fd::2,link-local-ip=169.254.1.1"
    text += ",mac-address=m,driver-opt=k=v,gw-priority=2"
    assert networking([text], [], "", "", "") == (
        "n",
        {
            "n": {
                "Aliases": ["a", "b"],
                "IPAMConfig": {"IPv4Address": "10.0.0.2", "IPv6Address": "fd::2", "LinkLocalIPs": ["169.254.1.1"]},
                "MacAddress": "m",
                "DriverOpts": {"k": "v"},
                "GwPriority": 2,
            }
        },
    )


def test_what_cannot_be():
    for given in (["a", "a"], ["alias=x"], ["name=a,colour=red"], ["name=a,x"]):
        with pytest.raises(InvalidParameter, match="network"):
            networking(given, [], "", "", "")
    with pytest.raises(InvalidParameter, match="conflicting"):
        networking(["name=a,alias=x"], ["y"], "", "", "")


@pytest.mark.parametrize("number", ["²", "--5", "x", ""])
def test_a_priority_that_is_no_number_is_refused(number):
    with pytest.raises(InvalidParameter, match="gw-priority"):
        networking([f"name=a,gw-priority={number}"], [], "", "", "")
