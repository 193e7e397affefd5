"""Limits on how often nodes leave; the desk is a double. The calls themselves: tests/integration/swarm/port."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.errors import Unavailable
from husk.swarm.port.dispatch import LEAVE, LEAVING, DispatchBody, DispatchHandlers
from husk.swarm.port.faults import TooMany
from tests.support.handlers import port_of


async def test_a_node_leaves_now_and_then() -> None:
    now, left, fails = 0.0, list[str](), False

    async def leave(node: str) -> None:
        if fails:
            raise Unavailable("the store is away")
        left.append(node)

    port = port_of(DispatchHandlers(cast(Any, SimpleNamespace(leave=leave)), lambda: now))
    await port.call(LEAVE, "w", DispatchBody())
    with pytest.raises(TooMany, match="has just left"):
        await port.call(LEAVE, "w", DispatchBody())
    await port.call(LEAVE, "x", DispatchBody())
    now, fails = LEAVING, True
    with pytest.raises(Unavailable):
        await port.call(LEAVE, "w", DispatchBody())
    fails = False
    await port.call(LEAVE, "w", DispatchBody())
    assert left == ["w", "x", "w"], "what could not be written down may be said again at once"
