"""Moments when a connection to a Unix socket has been accepted."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.kernel import unixdiag


@pytest.fixture(params=[socket.SOCK_STREAM, socket.SOCK_SEQPACKET])
def pair(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A listener, and a client in its queue."""
    listener, client = (socket.socket(socket.AF_UNIX, request.param) for _ in range(2))
    with listener, client:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        client.connect(str(tmp_path / "socket"))
        yield listener, client


def test_a_client_in_the_queue_is_not_accepted(pair: tuple[socket.socket, socket.socket]) -> None:
    listener, client = pair
    if unixdiag.accepted(client) is None:
        pytest.skip("this kernel was built without unix_diag")
    assert unixdiag.accepted(client) is False
    with listener.accept()[0]:
        assert unixdiag.accepted(client) is True
    assert unixdiag.accepted(client) is False
