"""Restore of containers after the daemon was away: records and host agree again, before serving.

A container whose monitor lives is adopted as it is. One that ended meanwhile gets its exit recorded. Whatever belongs
to no running container (a bundle, a mount, a directory without a record) is the rest of something cut off: it goes.
The steps of builds have no records at all: what a former daemon left of them, running or not, goes in the same way.
"""

import asyncio
import logging
from collections.abc import Callable

from msgspec.structs import replace

from husk.aio.tasks import Tasks
from husk.engine.containers import health, states
from husk.engine.containers.config import restart_policy
from husk.engine.containers.drivers import Drivers, bundle_of
from husk.engine.containers.index import ContainerIndex, Instance
from husk.engine.containers.lifecycle import Lifecycle
from husk.engine.containers.pause import Pauser
from husk.engine.containers.release import Releaser
from husk.engine.containers.remove import ContainerRemover
from husk.engine.model.container import ZERO_TIME
from husk.errors import HuskError

log = logging.getLogger(__name__)


class Restorer:
    def __init__(
        self,
        *,
        index: ContainerIndex,
        drivers: Drivers,
        lifecycle: Lifecycle,
        pauser: Pauser,
        releaser: Releaser,
        remover: ContainerRemover,
        tasks: Tasks,
    ) -> None:
        self._index = index
        self._paths = drivers.assembly.paths
        self._monitor = drivers.monitor
        self._runtimes = drivers.runtimes
        self._leftovers = drivers.leftovers
        self._lifecycle = lifecycle
        self._pauser = pauser
        self._releaser = releaser
        self._remover = remover
        self._tasks = tasks

    async def restore(self) -> None:
        await self._cut_off_starts()
        await self._sweep()
        held = await asyncio.to_thread(self._leftovers.held)
        for instance in self._index:
            try:
                await self._restore(instance, instance.id in held)
            except Exception:
                # Whatever it is that is wrong with one, the others have to be served.
                log.exception("container %s could not be restored", instance.id[:12])

    async def _restore(self, instance: Instance, held: bool) -> None:
        """`held` says whether anything on the host belongs to a process of it."""
        record = instance.record
        policy = record.host_config.restart_policy
        was_running = record.state.running
        if record.state.status in ("running", "paused"):
            if self._adopt(instance):
                if record.state.status == "paused" and record.paused_for_commit:
                    await self._pauser.unpause(instance, for_commit=True)
                return
            await self._lifecycle.ended(instance, self._exit_time(instance))
        else:
            if held:
                await self._releaser.release(instance)
                instance.believe(instance.draft.record)
            else:
                self._releaser.forget(instance)
            if record.state.status == "removing":
                await self._remover.remove(instance, force=False)
        if not self._index.present(instance) or instance.pending_restart is not None:
            return
        record = instance.record
        if record.state.status == "exited" and record.host_config.auto_remove:
            # The former daemon was cut off before it could remove it, or in a restart.
            await self._remover.remove(instance, force=False)
            return
        if record.state.status == "restarting":
            self._lifecycle.schedule_restart(instance, 0.0)
        elif record.state.started_at != ZERO_TIME and restart_policy.should_start_with_daemon(
            policy, was_running, record.state.exit_code, record.has_been_manually_stopped
        ):
            # A new beginning, as when somebody starts it: from now on its policy counts again.
            instance.believe(replace(instance.draft.record, has_been_manually_stopped=False, restart_count=0))
            self._lifecycle.schedule_restart(instance, 0.0)

    def _adopt(self, instance: Instance) -> bool:
        """Take a running container over, if its monitor lives."""
        record = instance.record
        try:
            bundle = bundle_of(record, self._paths)
            found = self._monitor.adopt(bundle, record.state.pid, record.monitor_pid, record.monitor_started)
            if found is None:
                return False
            instance.life = states.begun(instance.life, found)
            state = replace(record.state, health=health.begin(record.config, record.state.health))
            instance.believe(replace(instance.draft.record, state=state))
            self._lifecycle.watch(instance)
        except (OSError, HuskError):
            return False
        return True

    def _exit_time(self, instance: Instance) -> int | None:
        return self._monitor.exit_time(bundle_of(instance.record, self._paths))

    async def _cut_off_starts(self) -> None:
        """A start that the former daemon did not live to see goes on without it, and must not survive us."""
        running = {i.id for i in self._index if i.record.state.status in ("running", "paused")} | self._index.aside
        if strays := self._leftovers.bundles() - running:
            await asyncio.to_thread(self._leftovers.end_starts, strays)

    async def _sweep(self) -> None:
        """Release what lies on the host without a record: the rest of a removal or a creation that was cut off."""
        known = {instance.id for instance in self._index} | self._index.aside
        for container_id in self._leftovers.bundles() - known:
            log.info("releasing what is left of container %s", container_id[:12])
            for runtime in self._runtimes.known():
                try:
                    await runtime.delete(container_id, force=True)
                except HuskError as error:
                    log.debug("%s: %s", runtime.name, error.message)
            await _release(self._leftovers.clear_cgroup, container_id, "control group")
            await asyncio.to_thread(self._leftovers.discard_bundle, container_id)
        for container_id in self._leftovers.stagings() - known:
            await _release(self._leftovers.unstage, container_id, "mounts")
        for container_id in self._leftovers.shms() - known:
            await _release(self._leftovers.release_shm, container_id, "shared memory")
        if strays := self._leftovers.directories() - known:
            # They may be large, and nobody waits for them.
            self._tasks.spawn(self._discard(strays), "delete what is left of containers")

    async def _discard(self, container_ids: set[str]) -> None:
        for container_id in container_ids:
            await asyncio.to_thread(self._leftovers.discard, container_id)


async def _release(work: Callable[[str], None], container_id: str, what: str) -> None:
    try:
        await asyncio.to_thread(work, container_id)
    except (OSError, HuskError) as error:
        log.error("cannot release the %s of container %s: %s", what, container_id[:12], error)
