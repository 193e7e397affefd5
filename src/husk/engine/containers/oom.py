"""Out of memory: told when it happens, not only when the container ends of it.

conmon touches the file `oom` in the bundle each time the container runs out of memory; what the kernel counts tells
whether a process was killed for it. The container's first process may survive that; `lifecycle` looks once more at its
end.
"""

import asyncio
import logging
from collections.abc import Callable

from msgspec.structs import replace

from husk.aio.tasks import Tasks
from husk.engine.containers.drivers import Monitor, bundle_of
from husk.engine.containers.index import Companion, ContainerIndex, Instance
from husk.engine.model.container import Container
from husk.runtime.assembly import cgroup
from husk.runtime.assembly.paths import Paths
from husk.runtime.supervise.oom_watches import OomWatches

log = logging.getLogger(__name__)

_ATTEMPTS, _PAUSE = 50, 0.02


class MemoryWatch(Companion):
    def __init__(
        self,
        index: ContainerIndex,
        paths: Paths,
        monitor: Monitor,
        publish: Callable[[Container, str], None],
        tasks: Tasks,
        kills: Callable[[str], int] = cgroup.oom_kills,
        attempts: int = _ATTEMPTS,
        pause: float = _PAUSE,
    ) -> None:
        """`kills` counts those of a control group: it is asked so many times, with a pause between."""
        self._read_kills, self._attempts, self._pause = kills, attempts, pause
        self._index = index
        self._paths = paths
        self._monitor = monitor
        self._publish = publish
        self._tasks = tasks
        self._watches = OomWatches()
        self._watched: dict[str, int] = {}
        self._kills: dict[str, int] = {}

    def running(self, instance: Instance) -> None:
        if instance.id in self._watched:
            return
        record = instance.record
        try:
            bundle = bundle_of(record, self._paths)
            self._watched[record.id] = self._watches.add(bundle, lambda: self._happened(instance))
        except OSError as error:
            log.warning("container %s: lack of memory is seen at its end only: %s", record.id[:12], error.strerror)
        if self._monitor.oom(bundle_of(record, self._paths)) and not record.state.oom_killed:
            self._happened(instance)

    def ended(self, instance: Instance) -> None:
        self._kills.pop(instance.id, None)
        number = self._watched.pop(instance.id, None)
        if number is not None:
            self._watches.remove(number)

    def close(self) -> None:
        self._watches.close()

    def _happened(self, instance: Instance) -> None:
        self._tasks.spawn(self._report(instance), f"out of memory {instance.id[:12]}")

    async def _report(self, instance: Instance) -> None:
        for _ in range(self._attempts):
            async with instance.lock:
                # The end of a container reports it too.
                if instance.id not in self._watched or instance.record.state.status not in ("running", "paused"):
                    return
                kills = self._read_kills(self._paths.cgroup(instance.id, instance.record.host_config.cgroup_parent))
                # One that is not to be killed for it waits for memory, which is worth the same event.
                if kills > self._kills.get(instance.id, 0) or instance.record.host_config.oom_kill_disable:
                    self._kills[instance.id] = kills
                    record = instance.draft.record
                    state = replace(record.state, oom_killed=True)
                    await self._index.settle(instance, replace(record, state=state))
                    self._publish(instance.record, "oom")
                    return
            # The kernel tells ahead of the deed.
            await asyncio.sleep(self._pause)
