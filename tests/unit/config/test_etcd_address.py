"""Addresses of etcd, and texts that are none."""

import pytest

from husk.config.etcd_address import read_address
from husk.errors import InvalidParameter


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
