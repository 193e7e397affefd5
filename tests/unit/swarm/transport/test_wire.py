import asyncio
import errno
import socket
import ssl

import pytest

from husk.swarm.transport.wire import SILENT, _ended, connect, keep_alive, plainly
from husk.text.endpoints import HostPort
from tests.support.free_ports import free_port


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ECONNREFUSED, "x"), "Connection refused"),
        (OSError("as told"), "as told"),
        (OSError(), "the connection was closed"),
        (ssl.SSLError(1, "[SSL: WRONG] what"), "TLS: "),
    ],
)
def test_errors_in_plain_words(error: OSError, said: str) -> None:
    assert plainly(error).startswith(said)


async def test_who_takes_a_connection_and_says_nothing() -> None:
    held = []

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)

    async with await asyncio.start_server(hold, "127.0.0.1", 0) as server:
        endpoint = HostPort("127.0.0.1", server.sockets[0].getsockname()[1])
        with pytest.raises(OSError, match=SILENT):
            await connect(endpoint, None, "", 0.1)
        held.pop().close()


async def test_who_closes_at_once() -> None:
    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with await asyncio.start_server(close, "127.0.0.1", 0) as server:
        endpoint = HostPort("127.0.0.1", server.sockets[0].getsockname()[1])
        with pytest.raises(OSError, match=r"closed|reset"):
            await connect(endpoint, None, "", 5)


async def test_who_is_cancelled_while_connecting() -> None:
    with pytest.raises(ConnectionRefusedError):
        await connect(HostPort("127.0.0.1", free_port()), None, "", 5)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0), asyncio.timeout(5):
            await connect(HostPort("192.0.2.1", 9), None, "", 60)


def test_a_host_that_is_gone_is_given_up() -> None:
    """Also when something was sent to it: the kernel would try for a quarter of an hour."""
    with socket.socket() as connection:
        keep_alive(connection)
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000


def test_a_reset_may_hide_what_tls_had_to_say() -> None:
    tls = ssl.create_default_context()
    assert _ended("Connection reset by peer", None) == "Connection reset by peer"
    assert _ended("Connection reset by peer", tls).endswith("it may not take the certificate that we have (TLS)")
    assert _ended("TLS: bad certificate", tls) == "TLS: bad certificate"
