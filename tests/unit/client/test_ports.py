import asyncio

import pytest

from husk.client.ports import Port, shown
from husk.errors import Unavailable


def test_addresses():
    assert Port("::1", 80).url == "http://[::1]:80"
    assert Port("h", 80).url_of("redis", "/0") == Port("h", 80).url_of("redis", "0") == "redis://h:80/0"
    assert shown({"80/tcp": [("0.0.0.0", 8080)], "81/tcp": []}) == "0.0.0.0:8080→80/tcp, 81/tcp"


async def test_waiting_until_it_takes_connections():
    async def taken(reader, writer):
        writer.close()

    async with await asyncio.start_server(taken, "127.0.0.1", 0) as server:
        port = Port("127.0.0.1", server.sockets[0].getsockname()[1])
        await port.wait_for(timeout=10)
    with pytest.raises(Unavailable, match=r"takes no connections after 0\.05 seconds"):
        await port.wait_for(timeout=0.05)
