"""Limits on how often nodes say their keys; the desk is a double. The calls themselves:
tests/integration/swarm/port."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.errors import Unavailable
from husk.swarm.port.addresses import ANNOUNCE, PAUSE, AddressHandlers
from husk.swarm.port.dispatch import DispatchBody
from husk.swarm.port.faults import TooMany
from tests.support.handlers import port_of


async def test_a_slow_one_that_fails_does_not_let_a_node_speak_sooner() -> None:
    now, fails = 0.0, asyncio.Event()

    async def announce(node: str, body: bytes) -> None:
        if body == b"slow":
            await fails.wait()
            raise Unavailable("the store is away")

    port = port_of(AddressHandlers(cast(Any, SimpleNamespace(announce=announce)), lambda: now))

    async def second() -> None:
        nonlocal now
        now = 2 * PAUSE
        await port.call(ANNOUNCE, "w", DispatchBody(content=b"quick"))
        fails.set()

    first, _ = await asyncio.gather(
        port.call(ANNOUNCE, "w", DispatchBody(content=b"slow")), second(), return_exceptions=True
    )
    assert isinstance(first, Unavailable)
    with pytest.raises(TooMany):
        await port.call(ANNOUNCE, "w", DispatchBody(content=b"again"))
