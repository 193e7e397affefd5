"""Every setting accepts what dockerd accepts, in one normal form, and says what is wrong with the rest."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.config import AddressPool, values
from husk.errors import InvalidParameter


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("unix:///run/husk.sock", "unix:///run/husk.sock"),
        ("unix://", "unix:///run/husk.sock"),
        ("tcp://127.0.0.1:2375", "tcp://127.0.0.1:2375"),
        ("tcp://0.0.0.0", "tcp://0.0.0.0:2375"),
        ("tcp://", "tcp://127.0.0.1:2375"),
        ("tcp://:1234", "tcp://127.0.0.1:1234"),
        ("tcp://[::1]:2375", "tcp://[::1]:2375"),
        ("tcp://localhost:0", "tcp://localhost:0"),
        ("127.0.0.1:2375", "tcp://127.0.0.1:2375"),
    ],
)
def test_hosts_are_completed(text, normal):
    assert values.host(text) == normal


@pytest.mark.parametrize(
    "text",
    [
        *("http://x", "unix://relative", "unix:///dir/", "unix:///" + "x" * 120),
        *("tcp://a b:1", "tcp://h:99999", "tcp://h:1/path", "tcp://user@h:1", "tcp://[::x]:1", "tcp://h:port"),
    ],
)
def test_other_hosts_are_refused(text):
    with pytest.raises(InvalidParameter, match="invalid host"):
        values.host(text)


@given(st.text(max_size=40))
def test_a_host_is_normal_or_refused(text):
    try:
        normal = values.host(text)
    except InvalidParameter:
        return
    assert values.host(normal) == normal


@pytest.mark.parametrize("text", ["10.0.0.0/8", "reg.example", "reg.example:5000", "[::1]:5000", "fd00::/8"])
def test_insecure_registries_are_hosts_or_networks(text):
    assert values.insecure_registry(text) == text


@pytest.mark.parametrize("text", ["http://reg", "reg/path", "", "reg:port", "-reg", "a b", "u@reg"])
def test_other_insecure_registries_are_refused(text):
    with pytest.raises(InvalidParameter, match="insecure registry"):
        values.insecure_registry(text)


def test_a_mirror_is_an_address_with_a_closing_slash():
    assert values.mirror("https://mirror.example:5000") == values.mirror("https://mirror.example:5000/")
    assert values.mirror("http://mirror.example/") == "http://mirror.example/"


@pytest.mark.parametrize(
    "text", ["mirror.example", "ftp://x", "https://", "https://x/path", "https://x?y", "https://u:p@x"]
)
def test_other_mirrors_are_refused(text):
    with pytest.raises(InvalidParameter, match="invalid mirror"):
        values.mirror(text)


@pytest.mark.parametrize("text", ["172.20.0.1", "172.20.0.0/16", "172.20.255.255/16", "10.0.0.1/32", "x", "fd00::1/64"])
def test_a_bridge_address_must_suit_a_host_of_its_network(text):
    with pytest.raises(InvalidParameter, match="invalid bip"):
        values.bridge_address(text)


@pytest.mark.parametrize("name", ["x" * 16, "a/b", "a b", "..; drop"])
def test_a_bridge_has_the_name_of_an_interface(name):
    with pytest.raises(InvalidParameter, match="invalid bridge"):
        values.bridge_name(name)


def test_a_pool_is_cut_into_pieces_of_its_own_size_or_smaller():
    assert values.address_pool("172.30.5.0/16", 24) == AddressPool("172.30.0.0/16", 24)
    for size in (15, 31):
        with pytest.raises(InvalidParameter, match="choose 16 to 30"):
            values.address_pool("172.30.0.0/16", size)
    assert values.address_pool("fd00:30::1/48", 64) == AddressPool("fd00:30::/48", 64)
    for size in (47, 127):
        with pytest.raises(InvalidParameter, match="choose 48 to 126"):
            values.address_pool("fd00:30::/48", size)
    with pytest.raises(InvalidParameter, match="invalid base pool"):
        values.address_pool("pool", 24)
    with pytest.raises(InvalidParameter, match="containers cannot have these addresses"):
        values.address_pool("0.0.0.0/8", 24)


def test_labels_are_pairs_and_agree_with_each_other():
    assert values.labels(["a=b", "c=d=e", "a=b"]) == ("a=b", "c=d=e")
    with pytest.raises(InvalidParameter, match="bad attribute format: a"):
        values.labels(["a"])
    with pytest.raises(InvalidParameter, match="conflict labels for a=2 and a=1"):
        values.labels(["a=1", "a=2"])


def test_log_levels_are_dockers():
    assert values.log_level("warning") == "warn"
    with pytest.raises(InvalidParameter, match="choose one of debug, info, warn, error, fatal"):
        values.log_level("loud")


def test_directories_become_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert values.directory("data-root", "x/../y", Path("/d")) == tmp_path / "y"
    assert values.directory("data-root", None, Path("/d")) == Path("/d")
    with pytest.raises(InvalidParameter, match="data-root cannot be /"):
        values.directory("data-root", "/", Path("/d"))


@pytest.mark.parametrize(
    ("text", "bytes"),
    [("0", 0), (4096, 4096), ("512m", 512 << 20), ("20g", 20 << 30), ("1.5 GiB", 3 << 29), ("2TB", 2 << 40), ("7b", 7)],
)
def test_a_size_has_dockers_units(text: str | int, bytes: int):
    assert values.size("max-layer-size", text) == bytes


@pytest.mark.parametrize("text", ["-1", "much", "1x", "", "1 2", -5])
def test_a_size_that_is_none_is_refused(text: str | int):
    with pytest.raises(InvalidParameter, match="invalid max-layer-size"):
        values.size("max-layer-size", text)


def test_a_cluster_store_has_an_address_and_all_certificates_or_none() -> None:
    files = {"kv.cacertfile": "/ca", "kv.certfile": "/cert", "kv.keyfile": "/key"}
    assert values.cluster_store("", {}) is None
    plain = values.cluster_store("etcd://10.0.0.1,10.0.0.2:99", {})
    assert plain is not None and plain.certificates is None
    sealed = values.cluster_store("etcd://10.0.0.1", files)
    assert sealed is not None and sealed.certificates == (Path("/ca"), Path("/cert"), Path("/key"))


@pytest.mark.parametrize(
    ("address", "options", "told"),
    [
        ("consul://10.0.0.1", {}, "etcd://HOST"),
        ("etcd://", {}, "etcd://HOST"),
        ("", {"kv.keyfile": "/key"}, "without --cluster-store"),
        ("etcd://a", {"kv.path": "x"}, "kv.cacertfile, kv.certfile, kv.keyfile"),
        ("etcd://a", {"kv.keyfile": "/key"}, "kv.cacertfile is missing"),
    ],
)
def test_a_cluster_store_that_cannot_be_used_says_why(address: str, options: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        values.cluster_store(address, options)


def test_ports_of_etcd_are_two() -> None:
    assert values.etcd_ports("3379,3380") == (3379, 3380)


@pytest.mark.parametrize("text", ["2379", "2379,", "2379,2379", "0,1", "1,65536", "a,b", "1,2,3", "1, 2", "-1,2"])
def test_ports_of_etcd_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match="invalid swarm-etcd-ports"):
        values.etcd_ports(text)
