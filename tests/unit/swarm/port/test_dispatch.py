"""Limits on how often nodes leave; the desk is a double. The calls themselves: tests/integration/swarm/port."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.errors import Unavailable
from husk.swarm.port.dispatch import LEAVING, DispatchBody, DispatchHandlers
from husk.swarm.port.faults import TooMany
from husk.swarm.port.peers import Peer


def peer(node: str) -> Peer:
    return cast(Peer, SimpleNamespace(node=node))


async def test_a_node_leaves_now_and_then() -> None:
    now, left, fails = 0.0, list[str](), False

    async def leave(node: str) -> None:
        if fails:
            raise Unavailable("the store is away")
        left.append(node)

    handlers = DispatchHandlers(cast(Any, SimpleNamespace(leave=leave)), lambda: now)
    await handlers._leave(peer("w"), DispatchBody())
    with pytest.raises(TooMany, match="has just left"):
        await handlers._leave(peer("w"), DispatchBody())
    await handlers._leave(peer("x"), DispatchBody())
    now, fails = LEAVING, True
    with pytest.raises(Unavailable):
        await handlers._leave(peer("w"), DispatchBody())
    fails = False
    await handlers._leave(peer("w"), DispatchBody())
    assert left == ["w", "x", "w"], "what could not be written down may be said again at once"
