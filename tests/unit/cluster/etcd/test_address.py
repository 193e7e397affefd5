"""Addresses of etcd, and certificates that can or cannot be used."""

import ssl
from pathlib import Path

import pytest

from husk.cluster.etcd.address import Certificates, read_address, tls_context
from husk.errors import InvalidParameter
from tests.support.certificates import Authority


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("etcd://10.0.0.1", ["10.0.0.1:2379"]),
        ("etcd://a:1,b , c:65535/", ["a:1", "b:2379", "c:65535"]),
        ("etcd://[fd00::1],[fd00::2]:23", ["[fd00::1]:2379", "[fd00::2]:23"]),
    ],
)
def test_addresses(address: str, found: list[str]):
    assert [str(endpoint) for endpoint in read_address(address)] == found


@pytest.mark.parametrize(
    "address",
    [
        "", "a", "http://a", "etcd://", "etcd://a,,b", "etcd://a:", "etcd://a:0", "etcd://a:65536", "etcd://a:x",
        "etcd://fd00::1", "etcd://[fd00::1", "etcd://[fd00::1]x", "etcd://u@a", "etcd://a/path", "etcd://a,a:2379",
    ],
)  # fmt: skip
def test_what_is_no_address(address: str):
    with pytest.raises(InvalidParameter, match="the cluster store"):
        read_address(address)


def test_certificates(tmp_path: Path):
    pair = Authority(tmp_path).issue("client")
    good = Certificates(Path(pair.ca), Path(pair.cert), Path(pair.key))
    context = tls_context(good)
    assert context.verify_mode == ssl.CERT_REQUIRED and context.check_hostname
    other = Authority(tmp_path / "other").issue("client")
    for bad in (
        good._replace(ca=tmp_path / "nothing"),
        good._replace(ca=good.key),
        good._replace(cert=tmp_path / "nothing"),
        good._replace(key=Path(other.key)),
    ):
        with pytest.raises(InvalidParameter, match="cannot be used"):
            tls_context(bad)
