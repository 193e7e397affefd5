"""A container's use of resources: samples of its control group and its interfaces, once or every second."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Literal

import msgspec

from husk.engine.containers.index import ContainerIndex, Instance
from husk.engine.model.clock import now_ns
from husk.engine.model.container import Container
from husk.runtime.assembly import usage as usages
from husk.runtime.assembly.paths import Paths
from husk.runtime.assembly.usage import CPU, BriefUsage, Interface, ResourceUsage

PERIOD = 1.0

Mode = Literal["stream", "once", "one-shot"]


class Measurement(msgspec.Struct, frozen=True):
    time_ns: int
    usage: ResourceUsage
    interfaces: dict[str, Interface] | None


class StatsSample(msgspec.Struct, frozen=True):
    """One line for the client: what is used now (nothing while it does not run) and what the processors did before."""

    container: Container
    now: Measurement | None = None
    before_ns: int = 0
    before: CPU | None = None


class RunningContainer(msgspec.Struct, frozen=True):
    """A container that runs, and where its numbers are. `pid` is 0 where it has no network of its own."""

    id: str
    name: str
    image: str
    cgroup: str
    pid: int


BriefMeasure = Callable[[str, int], BriefUsage | None]
"""Numbers of a container by its control group and its process; None for one that has ended."""


def brief(
    runners: Sequence[RunningContainer], deadline: float, measure: BriefMeasure = usages.brief
) -> list[tuple[RunningContainer, BriefUsage]]:
    """A few numbers of each, by `measure`, until `deadline` (of the monotonic clock): who comes after that is left
    out. One that has ended meanwhile is, too. For a thread: it reads files."""
    found = []
    for runner in runners:
        if time.monotonic() > deadline:
            break
        if (usage := measure(runner.cgroup, runner.pid)) is not None:
            found.append((runner, usage))
    return found


class Statistics:
    def __init__(
        self,
        index: ContainerIndex,
        paths: Paths,
        usage: Callable[[str], ResourceUsage] = usages.usage,
        interfaces: Callable[[int], dict[str, Interface]] = usages.interfaces,
        period: float = PERIOD,
    ) -> None:
        self._usage, self._interfaces, self._period = usage, interfaces, period
        self._index = index
        self._paths = paths

    def samples(self, reference: str, mode: Mode) -> AsyncIterator[StatsSample]:
        """`stream`: one every second until the container is removed. `once`: one, a second after the first reading,
        because usage is a difference. `one-shot`: one at once, without a difference."""
        return self._samples(self._index.find(reference), mode)

    def runners(self) -> list[RunningContainer]:
        """All containers that run, those that are paused too."""
        found = []
        for instance in self._index:
            record = instance.record
            if record.state.status in ("running", "paused"):
                host_config = record.host_config
                own_network = host_config.network_mode != "host" and not host_config.network_mode.startswith(
                    "container:"
                )
                path = self._paths.cgroup(record.id, host_config.cgroup_parent)
                pid = record.state.pid if own_network else 0
                found.append(RunningContainer(record.id, record.name, record.config.image, path, pid))
        return found

    def states(self) -> dict[str, int]:
        """Count the containers in each state."""
        found: dict[str, int] = {}
        for instance in self._index:
            status = instance.record.state.status
            found[status] = found.get(status, 0) + 1
        return found

    async def _samples(self, instance: Instance, mode: Mode) -> AsyncIterator[StatsSample]:
        removed = instance.removal()
        try:
            before = await self._measure(instance)
            if mode != "stream" and (before is None or mode == "one-shot"):
                yield StatsSample(instance.record, before)
                return
            while True:
                done, _ = await asyncio.wait({removed}, timeout=self._period)
                if done:
                    return
                now = await self._measure(instance)
                yield StatsSample(
                    instance.record,
                    now,
                    before.time_ns if now and before else 0,
                    before.usage.cpu if now and before else None,
                )
                if mode != "stream":
                    return
                before = now
        finally:
            removed.cancel()

    async def _measure(self, instance: Instance) -> Measurement | None:
        record = instance.record
        if record.state.status not in ("running", "paused"):
            return None
        return await asyncio.to_thread(self._read, record, record.state.pid)

    def _read(self, record: Container, pid: int) -> Measurement:
        time_ns = now_ns()
        usage = self._usage(self._paths.cgroup(record.id, record.host_config.cgroup_parent))
        on_host = record.host_config.network_mode == "host"
        interfaces = None if on_host or not pid else self._interfaces(pid) or None
        return Measurement(time_ns, usage, interfaces)
