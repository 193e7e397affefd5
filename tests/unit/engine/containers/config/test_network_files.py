"""/etc/hosts and /etc/resolv.conf: what a container reads about itself and its neighbours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.engine.containers.config.network_files import FALLBACK_DNS, host_names, hosts, resolv_conf
from husk.errors import InvalidParameter

names = st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True)
ipv4 = st.ip_addresses(v=4).filter(lambda address: not address.is_loopback).map(str)
ipv6 = st.ip_addresses(v=6).filter(lambda address: not address.is_loopback).map(str)


def entries(text: str) -> dict[str, str]:
    """Name to address; the first line of a name counts, as for the resolver."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        address, *words = line.split()
        for word in words:
            found.setdefault(word, address)
    return found


@given(st.dictionaries(names, ipv4 | ipv6), st.booleans())
def test_every_extra_name_has_its_address(wanted: dict[str, str], modern: bool) -> None:
    separator = "=" if modern else ":"
    extra = [f"{name}{separator}{address}" for name, address in wanted.items() if name != "localhost"]
    found = entries(hosts([("172.17.0.2", "own")], extra, ["172.17.0.1"]))
    assert {name: found[name] for name in wanted if name != "localhost"} == {
        name: address for name, address in wanted.items() if name != "localhost"
    }
    assert found["localhost"] == "127.0.0.1"


def test_the_hosts_file_is_dockers() -> None:
    assert hosts([("172.17.0.2", "a.b a")], ["up:host-gateway", "six:[::5]"], ["172.17.0.1"]) == (
        "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::\tip6-localnet\n"
        "ff00::\tip6-mcastprefix\nff02::1\tip6-allnodes\nff02::2\tip6-allrouters\n"
        "172.17.0.1\tup\n::5\tsix\n172.17.0.2\ta.b a\n"
    )


def test_without_a_network_there_is_no_line_of_its_own() -> None:
    assert hosts([], [], [], base="127.0.0.1 localhost\n\n") == "127.0.0.1 localhost\n"


def test_a_gateway_that_does_not_exist_is_no_empty_line() -> None:
    with pytest.raises(InvalidParameter, match=r"^unable to derive the IP value for host-gateway$"):
        hosts([], ["up:host-gateway"], [])


@pytest.mark.parametrize(
    ("hostname", "domainname", "expected"),
    [("a", "", ["a"]), ("a", "b.c", ["a.b.c", "a"]), ("a.b", "", ["a.b", "a"]), ("a.b", "c", ["a.b.c", "a"])],
)
def test_a_name_with_a_domain_is_known_without_it_too(hostname: str, domainname: str, expected: list[str]) -> None:
    assert host_names(hostname, domainname) == expected


HOST = """\
# a comment
; another: nameserver 9.9.9.9
domain old.example
nameserver 127.0.0.53
  nameserver 10.0.0.1 trailing words
nameserver fe80::1%eth0
nameserver
search a.example b.example
options ndots:2
options edns0 trust-ad
"""


def test_in_its_own_network_the_host_s_loopback_servers_are_left_out() -> None:
    assert resolv_conf(HOST, [], [], [], own_network=True) == (
        "nameserver 10.0.0.1\nsearch a.example b.example\noptions ndots:2 edns0 trust-ad\n"
    )


def test_in_the_host_s_network_its_servers_stay() -> None:
    assert resolv_conf(HOST, [], [], [], own_network=False).startswith(
        "nameserver 127.0.0.53\nnameserver 10.0.0.1\nnameserver fe80::1%eth0\n"
    )


def test_wishes_replace_what_the_host_says() -> None:
    assert resolv_conf(HOST, ["127.0.0.1"], ["x", "."], ["rotate"], own_network=True) == (
        "nameserver 127.0.0.1\nsearch x\noptions rotate\n"
    )


def test_a_dot_means_no_search() -> None:
    assert "search" not in resolv_conf(HOST, [], ["."], [], own_network=True)


def test_the_last_search_or_domain_counts() -> None:
    text = "search a\nsearch b c\ndomain d\nsearch\n"
    assert "\nsearch d\n" in resolv_conf("nameserver 1.1.1.1\n" + text, [], [], [], own_network=True)


@given(st.lists(ipv4 | ipv6 | st.just("127.0.0.1") | st.just("::1") | st.just("nonsense")))
def test_a_container_always_has_a_server_it_can_reach(servers: list[str]) -> None:
    text = resolv_conf("".join(f"nameserver {s}\n" for s in servers), [], [], [], own_network=True)
    usable = [s for s in servers if s[0].isdigit() and ":" not in s and s != "127.0.0.1"]
    assert text == "".join(f"nameserver {s}\n" for s in usable or FALLBACK_DNS)
