"""A port is given once, given back once, and refused with the reason."""

import errno
import itertools
import socket

import pytest

from husk.network.ports import HostPorts, PortRequest, PortTaken, PortTarget, PublishedPort, retargeted
from tests.support.free_ports import free_port


@pytest.fixture
def ports():
    made = HostPorts()
    yield made
    made.close()


def options(port: int, last: int = 0, protocol: str = "tcp", address: str = "127.0.0.1") -> PortRequest:
    return PortRequest(protocol, 80, address, port, last or port)


def test_a_fixed_port_is_held_while_it_is_taken(ports):
    number = free_port()
    taken = ports.take([options(number)], PortTarget("10.0.0.2"))
    assert taken == [PublishedPort("tcp", "127.0.0.1", number, "10.0.0.2", 80)]
    with socket.socket() as other, pytest.raises(OSError):
        other.bind(("127.0.0.1", number))
    ports.give_back(taken)
    ports.give_back(taken)
    assert len(ports) == 0
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", number))


@pytest.mark.parametrize(
    ("first", "second", "conflict"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("0.0.0.0", "127.0.0.1", True),
        ("127.0.0.1", "0.0.0.0", True),
        ("127.0.0.1", "127.0.0.2", False),
    ],
)
def test_everywhere_collides_with_every_address(ports, first, second, conflict):
    number = free_port()
    ports.take([options(number, address=first)], PortTarget("10.0.0.2"))
    if conflict:
        with pytest.raises(PortTaken, match=f"Bind for {second}:{number} failed: port is already allocated"):
            ports.take([options(number, address=second)], PortTarget("10.0.0.3"))
    else:
        ports.take([options(number, address=second)], PortTarget("10.0.0.3"))


def test_a_thousand_ports_of_one_range_are_found_in_one_pass():
    tried = list[int]()

    def hold(protocol: str, address: str, port: int) -> None:
        tried.append(port)
        if port % 2:
            raise OSError(errno.EADDRINUSE, "Address already in use")

    ports = HostPorts(hold=hold)
    before = ports.take([options(20000, 20099, address="127.0.0.2")], PortTarget("10.0.0.2"))
    wanted = [PortRequest("tcp", number, "0.0.0.0", 20000, 40000) for number in range(1, 1001)]
    tried.clear()
    taken: list[PublishedPort] = []
    turns = [len(tried) for _ in ports.taking(wanted, PortTarget("10.0.0.3"), taken)]
    assert [port.host_port for port in taken] == list(range(20002, 22002, 2)), "the first is another's"
    assert len(tried) == len(set(tried)) == 2000
    assert len(turns) >= 20, "others have turns in between"
    assert all(after - before <= 100 for before, after in itertools.pairwise([0, *turns]))
    ports.give_back([*taken, *before])
    assert len(ports) == 0


def test_who_finds_no_port_leaves_turns_to_others():
    def hold(protocol: str, address: str, port: int) -> None:
        raise OSError(errno.EADDRINUSE, "Address already in use")

    ports = HostPorts(hold=hold)
    turns = list[None]()
    with pytest.raises(PortTaken, match="all ports are allocated"):
        turns.extend(ports.taking([options(20000, 29999)], PortTarget("10.0.0.2"), []))
    assert len(turns) == 100


def test_protocols_have_ports_of_their_own(ports):
    number = free_port()
    ports.take([options(number), options(number, protocol="udp")], PortTarget("10.0.0.2"))
    assert len(ports) == 2


def test_a_range_gives_its_first_free_port(ports):
    number = free_port()
    ports.take([options(number)], PortTarget("10.0.0.2"))
    [second] = ports.take([options(number, number + 20)], PortTarget("10.0.0.3"))
    assert number < second.host_port <= number + 20


def test_a_full_range_says_so(ports):
    number = free_port()
    ports.take([options(number)], PortTarget("10.0.0.2"))
    with pytest.raises(PortTaken, match="port is already allocated"):
        ports.take([options(number, number)], PortTarget("10.0.0.3"))


def test_random_ports_go_on_from_the_last(ports):
    [first] = ports.take([options(0)], PortTarget("10.0.0.2"))
    ports.give_back([first])
    [second] = ports.take([options(0)], PortTarget("10.0.0.2"))
    assert second.host_port > first.host_port


def test_one_refusal_gives_all_of_them_back(ports):
    one, other = free_port(), free_port()
    ports.take([options(other)], PortTarget("10.0.0.2"))
    with pytest.raises(PortTaken):
        ports.take([options(one), options(other)], PortTarget("10.0.0.3"))
    assert len(ports) == 1


def test_a_port_of_another_program(ports):
    with socket.socket() as program:
        program.bind(("127.0.0.1", 0))
        program.listen()
        number = program.getsockname()[1]
        with pytest.raises(PortTaken, match=f"127.0.0.1:{number}:10.0.0.2:80/tcp: address already in use"):
            ports.take([options(number)], PortTarget("10.0.0.2"))


def test_an_address_that_the_host_does_not_have(ports):
    with pytest.raises(PortTaken, match="cannot assign requested address"):
        ports.take([options(free_port(), address="192.0.2.7")], PortTarget("10.0.0.2"))


def test_after_a_restart_ports_are_held_again_and_a_thief_is_only_noted(ports, caplog):
    kept = PublishedPort("tcp", "127.0.0.1", free_port(), "10.0.0.2", 80)
    with socket.socket() as thief:
        thief.bind(("127.0.0.1", 0))
        thief.listen()
        stolen = PublishedPort("tcp", "127.0.0.1", thief.getsockname()[1], "10.0.0.2", 81)
        ports.hold_again([kept, stolen])
    assert "of a running container" in caplog.text
    with pytest.raises(PortTaken, match="already allocated"):
        ports.take([options(stolen.host_port)], PortTarget("10.0.0.3"))
    ports.give_back([kept, stolen])
    assert len(ports) == 0


def test_a_routed_container_takes_no_port_of_the_host(ports):
    wished = PortRequest("tcp", 80, "0.0.0.0", 8080, 8080, "::")
    opened = ports.take([wished], PortTarget("10.0.0.2", "fd00::2", routed4=True, routed6=True))
    assert opened == [PublishedPort("tcp", "0.0.0.0", 0, "10.0.0.2", 80), PublishedPort("tcp", "::", 0, "fd00::2", 80)]
    assert len(ports) == 0
    # Without IPv6 there is nothing that the host's IPv6 addresses could stand for.
    assert ports.take([wished], PortTarget("10.0.0.2", routed4=True)) == opened[:1]


def test_a_container_with_ipv6_alone_is_reached_from_ipv4_too(ports):
    [taken] = ports.take([options(free_port())], PortTarget(ipv6="fd00::2"))
    assert (taken.container_ip, taken.family) == ("fd00::2", "")


def test_ports_move_with_their_container_or_have_to_be_found_anew():
    old = [PublishedPort("tcp", "0.0.0.0", 8080, "10.0.0.2", 80), PublishedPort("tcp", "::", 8080, "10.0.0.2", 80)]
    moved = retargeted(old, PortTarget("10.1.0.2", "fd00::2"))
    assert moved is not None
    assert [port.container_ip for port in moved] == ["10.1.0.2", "fd00::2"]
    assert retargeted(old, PortTarget("10.1.0.2", routed4=True)) is None
    assert retargeted(old, PortTarget()) is None
