import asyncio
import socket

import pytest

from husk.swarm.transport.listener import LazyListener
from tests.support.waiting import until_async


async def test_what_is_behind_is_made_when_somebody_knocks() -> None:
    opened: list[socket.socket] = []

    async def opening(listener: socket.socket) -> None:
        opened.append(listener)

    door = LazyListener("127.0.0.1", 0, opening)
    with pytest.raises(OSError, match="in use"):
        LazyListener("127.0.0.1", door.address[1], opening)
    await asyncio.sleep(0)
    assert not opened
    for _ in range(2):
        _, writer = await asyncio.open_connection(*door.address)
        writer.close()
        await until_async(lambda: opened, "it is open")
    assert len(opened) == 1
    await door.close()
    await door.close()
    with pytest.raises(OSError, match=r"refused|111"):
        await asyncio.open_connection(*door.address)


async def test_nobody_has_knocked() -> None:
    async def opening(listener: socket.socket) -> None:
        raise AssertionError

    await LazyListener("127.0.0.1", 0, opening).close()


async def test_what_could_not_be_opened_is_opened_for_the_next_who_knocks() -> None:
    tried: list[socket.socket] = []

    async def opening(listener: socket.socket) -> None:
        tried.append(listener)
        if len(tried) < 3:
            raise OSError("no space")

    door = LazyListener("127.0.0.1", 0, opening, pause=0.01)
    _, writer = await asyncio.open_connection(*door.address)
    await until_async(lambda: len(tried) == 3, "whoever waits is heard")
    writer.close()
    await door.close()
