import asyncio
import contextlib
import socket
import ssl
import threading

import pytest

from husk.client.dial import client_context
from husk.client.tls import Stream
from tests.support.certificates import Authority


@pytest.fixture
def served(tmp_path):
    """Our end of a connection to somebody who speaks TLS in another way, and answers as the test says."""
    ours, theirs = socket.socketpair()
    threads = []

    async def connect(answer, host="127.0.0.1"):
        pair = Authority(tmp_path).issue("server", addresses=["127.0.0.1"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.cert, pair.key)

        def serve() -> None:
            with contextlib.suppress(OSError), context.wrap_socket(theirs, server_side=True) as other:
                answer(other)

        threads.append(threading.Thread(target=serve))
        threads[0].start()
        return Stream(*await asyncio.open_unix_connection(sock=ours), client_context(pair.directory, True), host)

    yield connect
    ours.close()
    for thread in threads:
        thread.join(10)
    theirs.close()


def _all(other: ssl.SSLSocket) -> bytes:
    return b"".join(iter(lambda: other.recv(1 << 16), b""))


async def _read(stream: Stream) -> bytes:
    whole = b""
    while data := await stream.read(1000):
        whole += data
    return whole


async def test_what_is_said_after_our_last_word_is_heard(served):
    stream = await served(lambda other: other.sendall(_all(other).upper() * 2))
    await stream.shake_hands()
    stream.write(b"hello" * 100_000)
    await stream.drain()
    assert stream.can_write_eof() and not stream.at_eof()
    stream.write_eof()
    assert await _read(stream) == b"HELLO" * 200_000
    assert stream.at_eof()
    stream.close()
    assert stream.is_closing()


async def test_what_came_before_our_last_word_is_not_lost(served):
    said = threading.Event()

    def answer(other: ssl.SSLSocket) -> None:
        other.sendall(b"one" * 10_000)
        said.set()
        other.sendall(_all(other))

    stream = await served(answer)
    await stream.shake_hands()
    first = await stream.read(3)
    await asyncio.to_thread(said.wait)
    stream.write(b"two")
    stream.write_eof()
    assert first + await _read(stream) == b"one" * 10_000 + b"two"
    stream.close()


async def test_another_ones_certificate_is_not_trusted(served):
    stream = await served(_all, host="127.0.0.2")
    with pytest.raises(ssl.SSLCertVerificationError):
        await stream.shake_hands()
    stream.close()


async def test_who_speaks_no_tls(served):
    ours, theirs = socket.socketpair()
    with theirs:
        context = ssl.create_default_context()
        stream = Stream(*await asyncio.open_unix_connection(sock=ours), context, "127.0.0.1")
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionResetError, match="does not speak TLS"):
            await stream.shake_hands()
        stream.close()


async def test_a_break_in_the_middle_is_told(served):
    def breaks(other: ssl.SSLSocket) -> None:
        other.sendall(b"one")
        socket.socket.sendall(other, b"\x17\x03\x03\x00\x20" + bytes(32))  # past its TLS

    stream = await served(breaks)
    await stream.shake_hands()
    assert await stream.read(3) == b"one"
    with pytest.raises(ConnectionResetError, match="TLS"):
        await _read(stream)
    stream.close()
