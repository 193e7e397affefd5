"""Published ports reach the kernel as elements, which are those that libnftables would have written."""

import subprocess
from contextlib import closing
from ipaddress import IPv4Network, IPv6Network

import pytest

from husk.errors import SystemFault
from husk.kernel import nfelements
from husk.kernel.nfelements import Element
from husk.kernel.nftwatch import RuleWatch
from husk.network import rules
from husk.network.firewall import Firewall
from husk.network.ports import PublishedPort
from husk.network.rules import BridgedNetwork

TABLE = "husk-test"
NETWORK = BridgedNetwork("br0", IPv4Network("10.0.0.0/24"), subnet6=IPv6Network("fd00::/64"))
PORTS = [
    PublishedPort("tcp", "0.0.0.0", 8080, "10.0.0.2", 80),
    PublishedPort("udp", "127.0.0.1", 5353, "10.0.0.2", 53),
    PublishedPort("sctp", "::", 9, "fd00::2", 99),
    PublishedPort("tcp", "2001:db8::1", 443, "fd00::3", 8443),
    PublishedPort("tcp", "0.0.0.0", 0, "10.0.0.2", 81),
    PublishedPort("udp", "::", 0, "fd00::2", 82),
    PublishedPort("tcp", "::", 8080, "10.0.0.2", 80),
]


@pytest.fixture
def firewall() -> Firewall:
    made = Firewall(TABLE)
    made.add_network(NETWORK)
    made.apply()
    return made


def listed() -> str:
    return "".join(subprocess.check_output(["nft", "list", "table", kind, TABLE], text=True) for kind in ("ip", "ip6"))


def test_elements_are_those_that_libnftables_writes(firewall: Firewall, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = listed()
    with monkeypatch.context() as patched:
        patched.setattr(firewall, "_write", pytest.fail)
        firewall.publish(PORTS)
        assert firewall.intact()
        ours = listed()
    firewall.apply()
    assert listed() == ours
    assert ours.count(" : ") == 4 + 4, "the types of four maps and four elements"
    firewall.withdraw(PORTS)
    assert listed() == empty


def test_a_change_is_whole_or_nothing(firewall: Firewall) -> None:
    element = Element("ip", TABLE, "opened", nfelements.protocol("tcp") + bytes(8))
    absent = element._replace(where="nowhere")
    before = listed()
    with pytest.raises(OSError, match=f"add element of ip {TABLE} nowhere: No such file"):
        nfelements.add([element, absent])
    assert listed() == before
    nfelements.add([element])
    nfelements.add([element])
    with pytest.raises(OSError, match="delete element"):
        nfelements.delete([element, element._replace(key=nfelements.protocol("udp") + bytes(8))])
    assert listed() != before
    nfelements.delete([element])
    assert listed() == before


@pytest.mark.parametrize("damage", ["flush map ip {} ports", "delete table ip {}"])
def test_what_somebody_removed_is_written_again_with_the_next_change(firewall: Firewall, damage: str) -> None:
    firewall.publish(PORTS[:1])
    whole = listed()
    subprocess.run(["nft", *damage.format(TABLE).split()], check=True)
    if "table" in damage:
        firewall.publish(PORTS[1:2])
        firewall.withdraw(PORTS[1:2])
    else:
        firewall.withdraw(PORTS[:1])
        firewall.publish(PORTS[:1])
    assert listed() == whole
    assert firewall.intact()


def test_without_a_table_the_kernel_says_so(firewall: Firewall) -> None:
    firewall.remove()
    with pytest.raises(OSError, match="No such file"):
        nfelements.add([Element("ip", TABLE, "ports", bytes(8), bytes(8))])


def test_what_a_kernel_lacks_does_not_keep_it_from_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    firewall = Firewall(TABLE)
    firewall.add_network(NETWORK._replace(subnet6=None))
    run = firewall._nftables.run

    def old(commands: str) -> str:
        if "table bridge" in commands or "table ip6" in commands:
            raise SystemFault("nftables: Operation not supported")
        return run(commands)

    monkeypatch.setattr(firewall._nftables, "run", old)
    firewall.apply()
    assert firewall.intact()
    assert "chain forward" in subprocess.check_output(["nft", "list", "table", "ip", TABLE], text=True)
    monkeypatch.undo()
    firewall.apply()
    assert firewall.intact()
    assert "chain input" in subprocess.check_output(["nft", "list", "table", "bridge", TABLE], text=True)


DAMAGES = {
    "an element of a set": ["delete element ip {} subnets {{ 10.0.0.0/24 }}"],
    "a network of the other kind": ['delete element ip6 {} bridges {{ "br0" }}'],
    "a port": ["delete element ip {} ports {{ tcp . 8080 }}"],
    "a port that leads elsewhere now": [
        "delete element ip {} ports {{ tcp . 8080 }}",
        "add element ip {} ports {{ tcp . 8080 : 10.0.0.9 . 80 }}",
    ],
    "an opened port": ["delete element ip {} opened {{ tcp . 10.0.0.2 . 81 }}"],
    "a port that nobody published": ["add element ip {} ports {{ tcp . 9999 : 10.0.0.2 . 80 }}"],
    "a rule": ["flush chain ip {} guard"],
    "others in our rules' place": ["flush chain ip {} postrouting", *["add rule ip {} postrouting accept"] * 3],
    "a rule more": ["insert rule ip6 {} forward accept"],
    "what keeps frames away": ["flush chain bridge {} input"],
    "a chain's policy": ["add chain ip {} forward {{ policy drop; }}"],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_rules_that_are_not_exactly_ours_are_seen_and_written_again(firewall: Firewall, damage: list[str]) -> None:
    firewall.publish(PORTS)
    assert firewall.intact()
    before = listed()
    for command in damage:
        subprocess.run(["nft", command.format(TABLE)], check=True)
    assert not firewall.intact()
    firewall.apply()
    assert firewall.intact() and listed() == before


@pytest.mark.parametrize("damage", ["flush map ip {} ports", "delete element ip {} ports {{ tcp . 8080 }}"])
def test_elements_that_somebody_removes_are_told(firewall: Firewall, damage: str) -> None:
    firewall.publish(PORTS[:1])
    with closing(RuleWatch([TABLE])) as watch:
        assert not watch.removed()
        subprocess.run(["nft", damage.format(TABLE)], check=True)
        assert watch.removed()
    assert not firewall.intact()


def test_a_name_that_looks_like_a_port_is_none(firewall: Firewall) -> None:
    """The author of an element's comment writes what they like into a listing."""
    firewall.publish(PORTS[:1])
    subprocess.run(["nft", f"delete element ip {TABLE} ports {{ tcp . 8080 }}"], check=True)
    element = 'add element ip {} routed {{ "x" comment "10.0.0.2 : 80" }}'
    subprocess.run(["nft", element.format(TABLE)], check=True)
    assert not firewall.intact()


@pytest.mark.parametrize("family", ["ip", "ip6", "bridge"])
def test_the_rules_need_no_names_of_protocols(family: str) -> None:
    hidden = "mount --bind /dev/null /etc/protocols 2>/dev/null; exec nft --check --file -"
    text = rules.bridge_ruleset(TABLE) if family == "bridge" else rules.ruleset(TABLE, [NETWORK], PORTS, family)
    subprocess.run(["unshare", "--mount", "sh", "-c", hidden], input=text, text=True, check=True)
