"""Ways to a receiver of logs: it is there, it is away, it goes, it answers something else."""

import asyncio
import socket

import pytest

from husk.runtime.logs.transport import Address, connect


@pytest.fixture
def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(10)
        yield receiver


async def test_datagrams_over_the_network(udp):
    connection = await connect(Address("udp", "127.0.0.1", udp.getsockname()[1]))
    await connection.send(b"one")
    await connection.send(b"two")
    assert [udp.recv(100), udp.recv(100)] == [b"one", b"two"]
    await connection.close()


async def test_a_datagram_that_comes_back_is_no_fault(udp):
    connection = await connect(Address("udp", "127.0.0.1", udp.getsockname()[1]))
    udp.close()
    for _ in range(3):
        await connection.send(b"lost")
    await connection.close()


async def test_a_socket_of_this_host_tells_what_it_is(tmp_path):
    path = str(tmp_path / "log")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(path)
        connection = await connect(Address("unix", path))
        await connection.send(b"hello")
        assert receiver.recv(100) == b"hello"
        await connection.close()


async def test_nobody_is_there(tmp_path):
    for address in (Address("unixgram", str(tmp_path / "none")), Address("unix", str(tmp_path / "none"))):
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
        connection = await connect(Address("unix", path))
        await connection.send(b"x")
        await connection.expect(b"ok")
        await connection.close()


@pytest.mark.parametrize("answer", [b"no", b"", b"o"])
async def test_what_is_no_acknowledgement(tmp_path, answer):
    path = str(tmp_path / "log")
    async with await answering(path, answer):
        connection = await connect(Address("unix", path))
        await connection.send(b"x")
        with pytest.raises(BrokenPipeError):
            await connection.expect(b"ok")
        await connection.close()


def test_addresses_are_told():
    assert str(Address("tcp", "host", 514)) == "host:514"
    assert str(Address("unix", "/dev/log")) == "/dev/log"
