"""Has a container run out of memory? Told when it happens, not only when the container ends of it.

conmon touches the file `oom` in the bundle each time the container runs out of memory; what the kernel counts tells
whether a process was killed for it. The container's first process may survive that; `lifecycle` looks once more at its
end.
"""

import asyncio
import logging
from collections.abc import Callable

from husk.engine.containers.companions import Companion
from husk.engine.containers.index import Index, Instance
from husk.engine.containers.places import Places
from husk.engine.model.container import Container
from husk.kernel.cgroups import oom_kills
from husk.kernel.inotify import IN_CLOSE, Watches
from husk.runtime.conmon import Monitor
from husk.tasks import Tasks

log = logging.getLogger(__name__)

_ATTEMPTS, _PAUSE = 50, 0.02


class MemoryWatch(Companion):
    def __init__(
        self, index: Index, places: Places, monitor: Monitor, publish: Callable[[Container, str], None], tasks: Tasks
    ) -> None:
        self._index = index
        self._places = places
        self._monitor = monitor
        self._publish = publish
        self._tasks = tasks
        self._watches = Watches()
        self._watched: dict[str, int] = {}
        self._kills: dict[str, int] = {}

    def running(self, instance: Instance) -> None:
        if instance.id in self._watched:
            return
        record = instance.record
        try:
            directory = self._places.bundle_directory(record.id)
            self._watched[record.id] = self._watches.add(
                directory, IN_CLOSE, lambda name: self._happened(instance) if name == b"oom" else None
            )
        except OSError as error:
            log.warning("container %s: lack of memory is seen at its end only: %s", record.id[:12], error.strerror)
        if self._monitor.oom(self._places.bundle(record)) and not record.state.oom_killed:
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
        for _ in range(_ATTEMPTS):
            async with instance.lock:
                # The end of a container reports it too.
                if instance.id not in self._watched or instance.record.state.status not in ("running", "paused"):
                    return
                kills = oom_kills(self._places.cgroup(instance.record))
                # One that is not to be killed for it waits for memory, which is worth the same event.
                if kills > self._kills.get(instance.id, 0) or instance.record.host_config.oom_kill_disable:
                    self._kills[instance.id] = kills
                    instance.record.state.oom_killed = True
                    await self._index.settle(instance)
                    self._publish(instance.record, "oom")
                    return
            # The kernel tells ahead of the deed.
            await asyncio.sleep(_PAUSE)
