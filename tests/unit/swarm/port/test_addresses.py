"""Limits on how often nodes say their keys; the desk is a double. The calls themselves:
tests/integration/swarm/port."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.errors import Unavailable
from husk.swarm.port import crowding
from husk.swarm.port.addresses import PAUSE, AddressHandlers
from husk.swarm.port.dispatch import DispatchBody
from husk.swarm.port.faults import TooMany
from husk.swarm.port.peers import Peer


def peer(node: str) -> Peer:
    return cast(Peer, SimpleNamespace(node=node))


async def test_keys_of_many_nodes_are_not_remembered_without_end() -> None:
    async def announce(node: str, body: bytes) -> None: ...

    handlers = AddressHandlers(cast(Any, SimpleNamespace(announce=announce)), lambda: 0.0)
    for number in range(crowding._MOST_REMEMBERED + 10):
        await handlers._announce(peer(str(number)), DispatchBody())
    assert len(handlers._announcing._last) == crowding._MOST_REMEMBERED


async def test_a_slow_one_that_fails_does_not_let_a_node_speak_sooner() -> None:
    now, fails = 0.0, asyncio.Event()

    async def announce(node: str, body: bytes) -> None:
        if body == b"slow":
            await fails.wait()
            raise Unavailable("the store is away")

    handlers = AddressHandlers(cast(Any, SimpleNamespace(announce=announce)), lambda: now)

    async def second() -> None:
        nonlocal now
        now = 2 * PAUSE
        await handlers._announce(peer("w"), DispatchBody(content=b"quick"))
        fails.set()

    first, _ = await asyncio.gather(
        handlers._announce(peer("w"), DispatchBody(content=b"slow")), second(), return_exceptions=True
    )
    assert isinstance(first, Unavailable)
    with pytest.raises(TooMany):
        await handlers._announce(peer("w"), DispatchBody(content=b"again"))
