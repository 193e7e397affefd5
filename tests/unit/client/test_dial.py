import asyncio

import pytest

from husk.client.dial import dialer
from husk.errors import InvalidParameter, Unavailable


@pytest.mark.parametrize(
    "address", ["", "unix://", "tcp://", "tcp://host", "tcp://host:x", "tcp://host:²", "tcp://h:99999", "/run/s"]
)
def test_what_is_no_address(address):
    with pytest.raises(InvalidParameter, match="invalid address"):
        dialer(address)


async def test_a_unix_socket(tmp_path):
    arrived = asyncio.Event()

    def arrive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        writer.close()

    async with await asyncio.start_unix_server(arrive, tmp_path / "s"):
        connection = await dialer(f"unix://{tmp_path}/s")()
        await arrived.wait()
        connection.close()


async def test_nobody_is_there(tmp_path):
    with pytest.raises(Unavailable, match=r"cannot reach an engine at unix://.*/s: No such file"):
        await dialer(f"unix://{tmp_path}/s")()


async def test_tcp():
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        connection = await dialer(f"tcp://127.0.0.1:{port}")()
        connection.close()
    with pytest.raises(Unavailable, match=f"tcp://127.0.0.1:{port}"):
        await dialer(f"tcp://127.0.0.1:{port}")()
