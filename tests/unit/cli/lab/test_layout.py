"""Places of the parts of a lab."""

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from husk.cli.lab.layout import MOST, USUAL_SUBNET, free, planned, read, written
from husk.config import Config
from husk.errors import InvalidParameter


def test_each_host_has_an_address_directories_and_a_socket_of_its_own():
    lab = planned("husk-lab", 3, USUAL_SUBNET)
    assert [str(host.address) for host in lab.hosts] == [f"198.51.100.{n}/24" for n in (11, 12, 13)]
    assert lab.hosts[1].docker_host == "unix:///run/husk-labs/husk-lab/host2.sock"
    assert lab.hosts[2].data_root == Path("/var/lib/husk-labs/husk-lab/host3")
    assert str(lab.own_address) == "198.51.100.1/24" and lab.mark == "--lab=/run/husk-labs/husk-lab"
    assert len({host.exec_root for host in lab.hosts}) == 3


def test_the_first_subnet_that_nothing_uses():
    assert free([]) == USUAL_SUBNET
    assert (
        free([IPv4Network("198.51.100.200"), IPv4Network("203.0.0.0/16"), IPv4Network("10.0.0.0/8")]) == "192.0.2.0/24"
    )
    assert (
        free(map(IPv4Network, ("198.51.100.0/24", "203.0.113.1", "192.0.2.0/30", "198.18.0.0/24"))) == "198.18.1.0/24"
    )
    with pytest.raises(InvalidParameter, match="choose some with --subnet"):
        free([IPv4Network("192.0.0.0/3")])


@pytest.mark.parametrize("name", ["husk", "docker", "dpkg", "lock"])
def test_no_name_leads_to_what_is_another_programs(name: str):
    lab = planned(name, 1, USUAL_SUBNET)
    assert (lab.run, lab.data) == (Path("/run/husk-labs", name), Path("/var/lib/husk-labs", name))
    assert Config(data_root=lab.hosts[0].data_root).instance != "husk"


@pytest.mark.parametrize(
    ("name", "count", "subnet"),
    [
        ("", 3, USUAL_SUBNET),
        ("../etc", 3, USUAL_SUBNET),
        ("a" * 16, 3, USUAL_SUBNET),
        ("lab", 0, USUAL_SUBNET),
        ("lab", MOST + 1, USUAL_SUBNET),
        ("lab", 3, "nonsense"),
        ("lab", 3, "10.0.0.1/8"),
        ("lab", 5, "10.0.0.0/28"),
        ("lab", 3, "2001:db8::/64"),
    ],
)
def test_what_cannot_be(name: str, count: int, subnet: str):
    with pytest.raises(InvalidParameter):
        planned(name, count, subnet)


def test_what_is_up_is_known_from_its_record():
    lab = planned("lab", 4, "10.1.0.0/16")
    assert read("lab", written(lab)) == lab
    assert read("lab", b'{"Ho') == planned("lab", MOST, USUAL_SUBNET), "all that could be there"
