"""Requests of clients about a container that goes at that moment."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any
from unittest.mock import Mock

import pytest

from husk.aio.tasks import Tasks
from husk.engine.containers.create import Creator
from husk.engine.containers.index import ContainerIndex
from husk.engine.containers.service import Containers
from husk.engine.model.container import KIND
from husk.engine.model.container_config import HostConfig
from husk.errors import Conflict, NotFound
from husk.storage.state.store import StateStore
from tests.unit.engine.records import container


@pytest.mark.parametrize(
    "change",
    [
        lambda containers: containers.rename("web", "other"),
        lambda containers: containers.remove("/web/db", False, False, link=True),
    ],
    ids=["rename", "unlink"],
)
async def test_a_change_that_waited_for_a_removal_brings_nothing_back(
    state: StateStore, change: Callable[[Containers], Coroutine[object, object, None]]
) -> None:
    index = ContainerIndex(state, Tasks())
    unused: dict[str, Any] = dict.fromkeys(
        ("lifecycle", "stopper", "pauser", "remover", "assembly", "images", "monitor", "publish")
    )
    containers = Containers(index=index, creator=lambda: Mock(spec=Creator), **unused)
    record = container("web", host_config=HostConfig(links=["/db:/web/db"]))
    index.reserve_name("web", record.id)
    instance = await index.add(record)
    async with instance.lock:
        waiting = Tasks().spawn(change(containers), "change", awaited=True)
        await asyncio.sleep(0)
        await index.delete(instance)
        # By now somebody else has its name.
        index.reserve_name("web", "5" * 64)
    with pytest.raises(NotFound, match=r"^No such container: web$"):
        await waiting
    assert state.load(KIND) == {}
    index.reserve_name("other", "6" * 64)
    with pytest.raises(Conflict):
        index.reserve_name("web", "7" * 64)
