"""A port that another program has is named before anything is changed."""

import socket

import pytest

from husk.errors import Unavailable
from husk.swarm.state.etcd.member import check_free
from husk.text.endpoints import HostPort


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match=rf"another program has 127.0.0.1:{port} on .* --swarm-etcd-ports"):
            check_free([HostPort("127.0.0.1", port)])
    check_free([HostPort("127.0.0.1", 0), HostPort("::1", 0)])  # any that is free


def test_an_address_of_another_host_is_for_etcd_to_tell() -> None:
    check_free([HostPort("192.0.2.1", 2379)])
