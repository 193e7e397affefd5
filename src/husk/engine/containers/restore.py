"""What became of the containers while the daemon was away? Makes records and host agree again, before serving.

A container whose monitor lives is adopted as it is. One that ended meanwhile gets its exit recorded. Whatever belongs
to no running container (a bundle, a mount, a directory without a record) is the rest of something cut off: it goes.
"""

import asyncio
import logging
import os
from pathlib import Path

from husk.engine.containers import health, joining, restart
from husk.engine.containers.index import Index, Instance
from husk.engine.containers.lifecycle import Lifecycle
from husk.engine.containers.places import Places
from husk.engine.containers.staging import unstage
from husk.engine.model.container import ZERO_TIME
from husk.errors import HuskError
from husk.kernel import process
from husk.kernel.mount import mounts_below, unmount
from husk.kernel.trees import discard_tree
from husk.runtime.conmon import Monitor
from husk.runtime.oci import Runtimes
from husk.storage.lost import put_aside
from husk.tasks import Tasks

log = logging.getLogger(__name__)


class Restorer:
    def __init__(
        self, *, index: Index, places: Places, lifecycle: Lifecycle, monitor: Monitor, runtimes: Runtimes, tasks: Tasks
    ) -> None:
        self._index = index
        self._places = places
        self._lifecycle = lifecycle
        self._monitor = monitor
        self._runtimes = runtimes
        self._tasks = tasks

    async def restore(self) -> None:
        await self._cut_off_starts()
        await self._sweep()
        held = await asyncio.to_thread(self._held)
        for instance in self._index:
            try:
                await self._restore(instance, instance.id in held)
            except Exception:
                # Whatever it is that is wrong with one, the others have to be served.
                log.exception("container %s could not be restored", instance.id[:12])

    def _held(self) -> set[str]:
        """The ids of those who have anything on the host that belongs to a process: all looked at together."""
        data = os.path.realpath(self._places.data) + "/"
        mounted = {point.removeprefix(data).partition("/")[0] for point in mounts_below(data)}
        return mounted.union(*map(_names, (self._places.run, self._places.stagings, self._places.shms)))

    async def _restore(self, instance: Instance, held: bool) -> None:
        record = instance.record
        policy = record.host_config.restart_policy
        was_running = record.state.running
        if record.state.status in ("running", "paused"):
            if self._adopt(instance):
                if record.state.status == "paused" and record.paused_for_commit:
                    await self._lifecycle.unpause(instance, for_commit=True)
                return
            await self._lifecycle.ended(instance, self._exit_time(instance))
        else:
            if held:
                await self._lifecycle.release(instance)
            else:
                self._lifecycle.forget(instance)
            if record.state.status == "removing":
                await self._lifecycle.remove(instance, force=False)
        if not self._index.present(instance) or instance.pending_restart is not None:
            return
        if record.state.status == "exited" and record.host_config.auto_remove:
            # The former daemon was cut off before it could remove it, or in a restart.
            await self._lifecycle.remove(instance, force=False)
            return
        if record.state.status == "restarting":
            self._lifecycle.schedule_restart(instance, 0.0)
        elif record.state.started_at != ZERO_TIME and restart.should_start_with_daemon(
            policy, was_running, record.state.exit_code, record.has_been_manually_stopped
        ):
            # A new beginning, as when somebody starts it: from now on its policy counts again.
            record.has_been_manually_stopped = False
            record.restart_count = 0
            self._lifecycle.schedule_restart(instance, 0.0)

    def _adopt(self, instance: Instance) -> bool:
        """Take a running container over. Its monitor's start time guards against a reused process id."""
        record = instance.record
        try:
            if process.start_time(record.monitor_pid) != record.monitor_started:
                return False
            instance.init_pidfd = process.pidfd_open(record.state.pid)
            record.state.health = health.begin(record.config, record.state.health)
            self._lifecycle.watch(instance)
        except (OSError, HuskError):
            return False
        return True

    def _exit_time(self, instance: Instance) -> int | None:
        return self._monitor.exit_time(self._places.bundle(instance.record))

    async def _cut_off_starts(self) -> None:
        """A start that the former daemon did not live to see goes on without it, and must not survive us."""
        running = {i.id for i in self._index if i.record.state.status in ("running", "paused")} | self._index.aside
        if strays := _names(self._places.run) - running:
            bundles = [str(self._places.bundle_directory(container_id)) for container_id in strays]
            await asyncio.to_thread(process.kill_given, bundles)

    async def _sweep(self) -> None:
        """Release what lies on the host without a record: the rest of a removal or a creation that was cut off."""
        known = {instance.id for instance in self._index} | self._index.aside
        for container_id in _names(self._places.run) - known:
            log.info("releasing what is left of container %s", container_id[:12])
            for runtime in self._runtimes.known():
                try:
                    await runtime.delete(container_id, force=True)
                except HuskError as error:
                    log.debug("%s: %s", runtime.name, error.message)
            await asyncio.to_thread(discard_tree, self._places.bundle_directory(container_id))
        for container_id in _names(self._places.stagings) - known:
            try:
                await asyncio.to_thread(unstage, self._places, container_id)
            except OSError as error:
                log.error("cannot release the mounts of container %s: %s", container_id[:12], error)
        try:
            await asyncio.to_thread(joining.sweep, self._places, known)
        except OSError as error:
            log.error("cannot release the shared memory of containers that are gone: %s", error)
        if strays := _names(self._places.data) - known:
            # They may be large, and nobody waits for them.
            self._tasks.spawn(self._discard(strays), "delete what is left of containers")

    async def _discard(self, container_ids: set[str]) -> None:
        for container_id in container_ids:
            await asyncio.to_thread(_discard, self._places.directory(container_id))


def _names(directory: Path) -> set[str]:
    try:
        return set(os.listdir(directory))
    except FileNotFoundError:
        return set()


def _discard(directory: Path) -> None:
    """Delete it; what cannot be deleted is put aside, or every start would find it again."""
    try:
        for target in mounts_below(str(directory)):
            unmount(target, detach=True)
    except OSError as error:
        log.error("cannot unmount what is left in %s: %s", directory, error)
        return
    if not discard_tree(directory):
        put_aside(directory.parent.parent, directory, "it belongs to no container and cannot be deleted")
