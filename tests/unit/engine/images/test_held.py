"""Layers that stay for builds."""

import asyncio

import pytest

from husk.aio.tasks import Tasks
from husk.engine.images.held import HeldLayers, LayerHolder
from husk.errors import DiskFault
from husk.storage.state.store import Change


async def test_what_is_held_is_held_by_the_next_daemon_too(state):
    held = HeldLayers(state)
    assert "a" not in held
    await held.add(["a", "b", "a"])
    await held.add([])
    assert "a" in held
    assert HeldLayers(state).all == {"a", "b"}
    assert await held.drop(["a", "c"]) == ["a"]
    assert await held.drop(["a"]) == []
    assert HeldLayers(state).all == {"b"}


async def test_what_is_let_go_of_is_released(state):
    released = []

    async def release(chain_ids):
        released.extend(chain_ids)

    holder = LayerHolder(HeldLayers(state), release)
    await holder.add(["a", "b"])
    await holder.release(["b", "of an image"])
    assert released == ["b"]
    assert holder.all == {"a"}


async def test_what_could_not_be_written_is_not_held(state):
    held = HeldLayers(state)
    state.full = True
    with pytest.raises(DiskFault):
        await held.add(["a"])
    assert "a" not in held


async def test_one_who_is_cancelled_meanwhile_leaves_no_record(state):
    held = HeldLayers(state)
    adding = Tasks().spawn(held.add(["a"]), "add", awaited=True)
    await asyncio.sleep(0)
    adding.cancel()
    await asyncio.wait([adding])
    assert adding.cancelled()
    await state.settle(Change("other", "a", None))  # what is under way is written before this
    assert "a" not in held
    assert HeldLayers(state).all == frozenset()
    await held.add(["a"])
    assert HeldLayers(state).all == {"a"}
