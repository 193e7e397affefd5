"""Ways to a receiver of logs: it is there, it is away, it goes, it answers something else."""

import asyncio
import os
import socket
import ssl
from functools import partial

import pytest
from cryptography.hazmat.primitives import serialization

from husk.errors import Unavailable
from husk.runtime.logs import transport
from husk.runtime.logs.transport import ReceiverAddress, Tls
from tests.support.certificates import Authority


async def touch(path, work):
    return work()


async def silent(path, work):
    raise Unavailable(f"{path} does not answer")


connect = partial(transport.connect, touch=touch)


@pytest.fixture
def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(10)
        yield receiver


async def test_datagrams_over_the_network(udp):
    connection = await connect(ReceiverAddress("udp", "127.0.0.1", udp.getsockname()[1]))
    await connection.send(b"one")
    await connection.send(b"two")
    assert [udp.recv(100), udp.recv(100)] == [b"one", b"two"]
    await connection.close()


async def test_a_datagram_that_comes_back_is_no_fault(udp):
    connection = await connect(ReceiverAddress("udp", "127.0.0.1", udp.getsockname()[1]))
    udp.close()
    for _ in range(3):
        await connection.send(b"lost")
    await connection.close()


async def test_a_socket_of_this_host_tells_what_it_is(tmp_path):
    path = str(tmp_path / "log")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(path)
        connection = await connect(ReceiverAddress("unix", path))
        await connection.send(b"hello")
        assert receiver.recv(100) == b"hello"
        await connection.close()


async def test_nobody_is_there(tmp_path):
    for address in (
        ReceiverAddress("unixgram", str(tmp_path / "none")),
        ReceiverAddress("unix", str(tmp_path / "none")),
    ):
        with pytest.raises(OSError):
            await connect(address)


async def answering(path, answer):
    async def serve(reader, writer):
        await reader.read(100)
        writer.write(answer)
        writer.close()

    return await asyncio.start_unix_server(serve, path)


async def test_acknowledgements(tmp_path):
    path = str(tmp_path / "log")
    async with await answering(path, b"ok"):
        connection = await connect(ReceiverAddress("unix", path))
        await connection.send(b"x")
        await connection.expect(b"ok")
        await connection.close()


@pytest.mark.parametrize("answer", [b"no", b"", b"o"])
async def test_what_is_no_acknowledgement(tmp_path, answer):
    path = str(tmp_path / "log")
    async with await answering(path, answer):
        connection = await connect(ReceiverAddress("unix", path))
        await connection.send(b"x")
        with pytest.raises(BrokenPipeError):
            await connection.expect(b"ok")
        await connection.close()


async def test_a_socket_whose_path_does_not_answer_is_no_business_of_the_loop():
    for protocol in ("unix", "unixgram"):
        with pytest.raises(Unavailable, match="/hung/log does not answer"):
            await transport.connect(ReceiverAddress(protocol, "/hung/log"), silent)


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "authority")


@pytest.fixture
def pair(authority):
    return authority.issue("client")


async def test_messages_are_sent_by_tls(authority, pair):
    server = authority.issue("server", addresses=["127.0.0.1"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=server.ca)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(server.cert, server.key)
    got = asyncio.get_running_loop().create_future()

    async def serve(reader, writer):
        got.set_result(await reader.read(100))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as listening:
        port = listening.sockets[0].getsockname()[1]
        connection = await connect(ReceiverAddress("tcp", "127.0.0.1", port, Tls(pair.ca, pair.cert, pair.key)))
        await connection.send(b"hello")
        assert await got == b"hello"
        await connection.close()


async def test_files_that_a_client_names_are_plain_files_or_nothing(pair, tmp_path):
    """A pipe would be waited for, a device has no end, and a password would be asked for on the terminal."""
    pipe, large, encrypted = tmp_path / "pipe", tmp_path / "large", tmp_path / "encrypted"
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate(1 << 40)
    with open(pair.key, "rb") as file:
        key = serialization.load_pem_private_key(file.read(), None)
    form, hidden = serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")
    encrypted.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, hidden))
    for tls, told in (
        (Tls(ca=str(pipe)), "is no regular file"),
        (Tls(ca="/dev/zero"), "is no regular file"),
        (Tls(certificate=str(large)), "has more than"),
        (Tls(ca=pair.ca, certificate=pair.cert, key=str(encrypted)), "encrypted"),
        (Tls(ca=str(tmp_path / "none")), "No such file"),
    ):
        with pytest.raises(OSError, match=told):
            await connect(ReceiverAddress("tcp", "127.0.0.1", 1, tls))
    with pytest.raises(Unavailable):
        await transport.connect(ReceiverAddress("tcp", "127.0.0.1", 1, Tls(ca=pair.ca)), silent)


def test_addresses_are_told():
    assert str(ReceiverAddress("tcp", "host", 514)) == "host:514"
    assert str(ReceiverAddress("unix", "/dev/log")) == "/dev/log"
