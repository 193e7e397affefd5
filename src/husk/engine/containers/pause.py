"""Pause and unpause: freeze a container and thaw it. Memory tells the truth; the record is ahead of a frozen one.

Ahead, because a frozen container that its record calls running could never be thawed after a crash.
"""

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from husk.engine.containers import states
from husk.engine.containers.drivers import Assembly, Runtimes
from husk.engine.containers.index import Companion, ContainerIndex, Instance, Publish
from husk.engine.model.container import Container
from husk.errors import Conflict


class Pauser:
    def __init__(
        self,
        index: ContainerIndex,
        assembly: Assembly,
        runtimes: Runtimes,
        publish: Publish,
        companions: Sequence[Companion],
    ) -> None:
        self._index = index
        self._assembly = assembly
        self._runtimes = runtimes
        self._publish = publish
        self._companions = companions

    async def pause(self, instance: Instance, for_commit: bool = False) -> None:
        """Freeze it; `for_commit` until `unpause(for_commit=True)`, or until somebody else thaws it."""
        async with instance.lock:
            record = _require_running(instance)
            if record.state.status == "paused":
                raise Conflict(f"Container {record.id} is already paused")
            await self._pause(instance, for_commit)

    async def unpause(self, instance: Instance, for_commit: bool = False) -> None:
        async with instance.lock:
            if not for_commit or instance.record.paused_for_commit:
                await self.resume(instance)

    async def _pause(self, instance: Instance, for_commit: bool) -> None:
        """A pause `for_commit` is the engine's own: should the daemon die in it, the next start ends it."""
        record = instance.draft.record
        after = replace(record, state=states.paused(record.state), paused_for_commit=for_commit)
        try:
            await self._index.save(instance, after, ahead=True)
            with instance.conflict_if_ended():
                await self._runtimes.of(record.host_config.runtime).pause(record.id)
        except BaseException:
            # A runtime that dies in it has frozen it already, or is about to.
            await asyncio.shield(thaw(self._assembly, record))
            await self._index.settle(instance, record)
            raise
        instance.believe(after)
        for companion in self._companions:
            companion.paused(instance)
        self._publish(record, "pause")

    async def resume(self, instance: Instance) -> None:
        """Thaw it, with its lock held."""
        record = instance.draft.record
        if record.state.status != "paused":
            raise Conflict(f"Container {record.id} is not paused")
        with instance.conflict_if_ended():
            await self._runtimes.of(record.host_config.runtime).resume(record.id)
        # It runs, whatever becomes of the writing.
        instance.believe(replace(record, state=states.thawed(record.state), paused_for_commit=False))
        for companion in self._companions:
            companion.running(instance)
        await self._index.settle(instance, instance.record)
        self._publish(record, "unpause")


async def thaw(assembly: Assembly, record: Container) -> None:
    """Let its processes run, whoever has frozen them."""
    await asyncio.to_thread(assembly.thaw, assembly.paths.cgroup(record.id, record.host_config.cgroup_parent))


def _require_running(instance: Instance) -> Container:
    record = instance.record
    if record.state.status == "restarting":
        raise Conflict(f"Container {record.id} is restarting, wait until the container is running")
    if record.state.status not in ("running", "paused"):
        raise Conflict(f"container {record.id} is not running")
    return record
