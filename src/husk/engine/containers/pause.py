"""How is a container frozen and thawed? What is told of it in memory is true; the record is ahead of a frozen one.

Ahead, because a frozen container that its record calls running could never be thawed after a crash.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from husk.engine.containers.companions import Companion
from husk.engine.containers.ends import conflict_if_ended
from husk.engine.containers.index import Index, Instance
from husk.engine.model.container import Container
from husk.errors import Conflict
from husk.runtime.oci import Runtimes


class Publish(Protocol):
    def __call__(self, record: Container, action: str, **attributes: str) -> None: ...


class Pauser:
    """Every call is made with the container's lock held."""

    def __init__(
        self, index: Index, runtimes: Runtimes, publish: Publish, companions: Callable[[], Sequence[Companion]]
    ) -> None:
        self._index = index
        self._runtimes = runtimes
        self._publish = publish
        self._companions = companions

    async def pause(self, instance: Instance, for_commit: bool) -> None:
        """A pause `for_commit` is the engine's own: should the daemon die in it, the next start ends it."""
        record = instance.record
        record.paused_for_commit = for_commit
        try:
            await self._index.save(instance, msgspec.structs.replace(record.state, status="paused"))
            with conflict_if_ended(instance):
                await self._runtimes.of(record.host_config.runtime).pause(record.id)
        except BaseException:
            record.paused_for_commit = False
            await self._index.settle(instance)
            raise
        record.state.status = "paused"
        for companion in self._companions():
            companion.paused(instance)
        self._publish(record, "pause")

    async def resume(self, instance: Instance) -> None:
        record = instance.record
        if record.state.status != "paused":
            raise Conflict(f"container {record.id} is not paused")
        with conflict_if_ended(instance):
            await self._runtimes.of(record.host_config.runtime).resume(record.id)
        record.state.status, record.paused_for_commit = "running", False
        for companion in self._companions():
            companion.running(instance)
        await self._index.settle(instance)
        self._publish(record, "unpause")
