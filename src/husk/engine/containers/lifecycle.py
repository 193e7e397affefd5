"""How does a container move through its life? Start, stop, kill, end, pause, remove: the only writers of its status.

Each change happens under the container's lock and is in the store before anyone hears of it. Waiting for a process to
end happens outside the lock, because the end itself is recorded under it.
"""

import asyncio
import contextlib
import logging
import os
import signal as signals
from collections.abc import Awaitable, Callable

from husk import threads
from husk.engine.containers import health, restart
from husk.engine.containers.companions import Companion
from husk.engine.containers.ends import within
from husk.engine.containers.index import Exit, Index, Instance
from husk.engine.containers.pause import Pauser
from husk.engine.containers.places import Places
from husk.engine.containers.release import Releaser
from husk.engine.containers.staging import Stager
from husk.engine.containers.starting import Starter
from husk.engine.host import Host
from husk.engine.model.clock import now_ns, parse_rfc3339, rfc3339
from husk.engine.model.container import Container, State
from husk.engine.model.events import Events
from husk.engine.model.signals import parse_signal
from husk.engine.networks.service import Networks
from husk.engine.volumes.service import Volumes
from husk.errors import Conflict, DiskFault, HuskError, InvalidParameter, NotModified, SystemFault, full_disk
from husk.kernel import process
from husk.kernel.cgroups import oom_killed
from husk.kernel.trees import discard_tree
from husk.runtime import oci
from husk.runtime.conmon import Monitor
from husk.runtime.oci import Runtimes
from husk.storage.layers import LayerStore
from husk.tasks import Tasks

log = logging.getLogger(__name__)

DEFAULT_STOP_TIMEOUT = 10
KILL_PATIENCE = 10.0
_STOP_FIRST = ": stop the container before removing or force remove"


class Lifecycle:
    def __init__(
        self,
        *,
        index: Index,
        places: Places,
        layers: LayerStore,
        networks: Networks,
        volumes: Volumes,
        monitor: Monitor,
        runtimes: Runtimes,
        events: Events,
        host: Host,
        tasks: Tasks,
        release_layers: Callable[[list[str]], Awaitable[object]],
    ) -> None:
        """`release_layers` is told which layers a container that goes no longer needs."""
        self._index = index
        self._places = places
        self._networks = networks
        self._volumes = volumes
        self._stager = Stager(places, layers, volumes)
        self._monitor = monitor
        self._runtimes = runtimes
        self._events = events
        self._tasks = tasks
        self._release_layers = release_layers
        self._starter = Starter(index, places, layers, networks, self._stager, monitor, runtimes, host)
        releaser = Releaser(places, runtimes, networks, self._stager)
        self.release = releaser.release
        self.forget = releaser.forget
        self._pauser = Pauser(index, runtimes, self.publish, lambda: self._companions)
        self._closing = False
        self._companions: tuple[Companion, ...] = ()

    def accompany(self, *companions: Companion) -> None:
        self._companions = companions

    # --- start

    async def start(self, instance: Instance) -> None:
        async with instance.lock:
            self._require_present(instance)
            status = instance.record.state.status
            if status == "paused":
                raise Conflict("cannot start a paused container, try unpause instead")
            if status in ("running", "restarting"):
                raise NotModified("container is already running")
            instance.record.has_been_manually_stopped = False
            instance.record.restart_count = 0
            await self._start(instance)

    async def _start(self, instance: Instance, by_policy: bool = False) -> None:
        """`by_policy` it is tried again when it fails, as it would be after a failed run."""
        record = instance.record
        before = record.state
        try:
            await self._starter.create(instance, self._companions)
        except BaseException as raised:
            error = full_disk(raised) or raised
            await asyncio.shield(self._start_failed(instance, error, by_policy))
            if isinstance(error, SystemFault) and not isinstance(error, DiskFault):
                raise InvalidParameter(error.message) from error
            raise error from None
        record.state = State(
            status="running",
            pid=record.state.pid,
            started_at=rfc3339(now_ns()),
            health=health.begin(record.config, record.state.health),
        )
        try:
            # Who asked for it hears that it cannot be kept; a policy was agreed to before, and is kept as well as it
            # can be.
            await (self._index.settle(instance) if by_policy else self._index.save(instance, state=True))
        except DiskFault as error:
            record.state = before
            await asyncio.shield(self._start_failed(instance, error, by_policy))
            raise
        except BaseException:
            # The caller is cancelled: it runs, and somebody must see its end.
            self._started(instance)
            raise
        self._started(instance)

    def _started(self, instance: Instance) -> None:
        self.publish(instance.record, "start")
        self.watch(instance)

    async def _start_failed(self, instance: Instance, error: BaseException, by_policy: bool) -> None:
        """Leave no litter of a failed start; the record keeps the reason."""
        record = instance.record
        reason = error.message if isinstance(error, HuskError) else str(error)
        # What the runtime was never asked to do leaves the code of the last run, if that was none of success.
        before = record.state.exit_code or oci.CANNOT_START
        code = oci.exit_code(reason) if isinstance(error, SystemFault) else before
        await self.release(instance)
        # The daemon goes in the middle of it: the next one finds the container as it was.
        cut_off = isinstance(error, asyncio.CancelledError)
        again = by_policy and not cut_off and self._starts_again(record, code)
        status = record.state.status if cut_off or record.state.status == "created" else "exited"
        record.state = State(
            status="restarting" if again else status,
            exit_code=code,
            error=reason,
            started_at=record.state.started_at,
            finished_at=record.state.finished_at,
            health=record.state.health,
        )
        if again:
            record.restart_count += 1
        await self._index.settle(instance)
        self.publish(record, "die", exitCode=str(code))
        instance.switchboard.finish()
        instance.announce_exit(Exit(code, reason))
        if again:
            instance.restart_delay = restart.next_delay(instance.restart_delay, 0)
            self.schedule_restart(instance, instance.restart_delay)
        elif record.host_config.auto_remove:
            await self._remove(instance, volumes=True)

    # --- end

    def watch(self, instance: Instance) -> None:
        """See the end of the container's monitor, which ends after the container, with all output written."""
        pidfd = process.pidfd_open(instance.record.monitor_pid)
        self._tasks.spawn(self._watch(instance, pidfd), f"watch {instance.id[:12]}")
        for companion in self._companions:
            companion.running(instance)

    async def _watch(self, instance: Instance, pidfd: int) -> None:
        try:
            await process.wait_exit(pidfd)
        finally:
            os.close(pidfd)
        async with instance.lock:
            if self._index.present(instance) and instance.record.state.status in ("running", "paused"):
                await self.ended(instance)

    async def ended(self, instance: Instance, finished_ns: int | None = None) -> None:
        """Record the end of the process, release what it held, tell everybody, then apply the container's policy.

        In this order, as with dockerd: who sees or hears of the end may count on its ports, addresses and networks
        being free. So memory says "running" until all is released; the store, for the next daemon, knows before.
        """
        record = instance.record
        for companion in self._companions:
            try:
                companion.ended(instance)
            except (HuskError, OSError):
                log.exception("container %s has ended, and not all that goes with it", instance.id[:12])
        bundle = self._places.bundle(record)
        code = self._monitor.exit_status(bundle)
        error = ""
        if code is None:
            # The monitor was killed or the host went down: what it watched must not live on unwatched.
            if instance.init_pidfd >= 0:
                process.send_signal(instance.init_pidfd, signals.SIGKILL)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait_exit(instance.init_pidfd), KILL_PATIENCE)
            code = 137 if instance.init_pidfd >= 0 else 255
            error = "the container's monitor ended without an exit status"
        started = parse_rfc3339(record.state.started_at)
        finished = finished_ns or now_ns()
        told_of_oom = record.state.oom_killed
        after = State(
            status="exited",
            exit_code=code,
            error=error,
            oom_killed=told_of_oom or self._monitor.oom(bundle) or oom_killed(self._places.cgroup(record)),
            started_at=record.state.started_at,
            finished_at=rfc3339(finished),
            health=record.state.health,
        )
        record.paused_for_commit = False
        if again := self._starts_again(record, code):
            after.status = "restarting"
            record.restart_count += 1
        await self._index.settle(instance, after)
        if after.oom_killed and not told_of_oom:
            self.publish(record, "oom")
        duration = max(0, finished - started) // 10**9
        await self.release(instance)
        if again and record.has_been_manually_stopped:  # meanwhile
            again, after.status = False, "exited"
            await self._index.settle(instance, after)
        record.state = after
        self.publish(record, "die", exitCode=str(code), execDuration=str(duration))
        instance.announce_exit(Exit(code, error))
        if again:
            instance.restart_delay = restart.next_delay(instance.restart_delay, duration)
            self.schedule_restart(instance, instance.restart_delay)
        elif record.host_config.auto_remove and not instance.keepers:
            await self._remove(instance, volumes=True)

    def _starts_again(self, record: Container, code: int) -> bool:
        """Does its policy start it again after an end with this code?"""
        return not self._closing and restart.should_restart(
            record.host_config.restart_policy, code, record.restart_count, record.has_been_manually_stopped
        )

    def schedule_restart(self, instance: Instance, delay: float) -> None:
        instance.pending_restart = self._tasks.spawn(
            self._restart_later(instance, delay), f"restart {instance.id[:12]}"
        )

    async def _restart_later(self, instance: Instance, delay: float) -> None:
        await asyncio.sleep(delay)
        async with instance.lock:
            if not self._index.present(instance) or instance.pending_restart is not asyncio.current_task():
                return
            instance.pending_restart = None
            try:
                await self._start(instance, by_policy=True)
            except (HuskError, OSError) as error:
                log.warning("container %s did not restart: %s", instance.id[:12], error)

    def _cancel_restart(self, instance: Instance) -> None:
        pending, instance.pending_restart = instance.pending_restart, None
        if pending is not None:
            pending.cancel()

    # --- stop and kill

    async def stop(self, instance: Instance, timeout: int | None, signal: str) -> None:
        record = instance.record
        wanted = parse_signal(signal or record.config.stop_signal or "SIGTERM")
        if not record.state.running:
            raise NotModified("container is already stopped")
        if timeout is None:
            timeout = DEFAULT_STOP_TIMEOUT if record.config.stop_timeout is None else record.config.stop_timeout
        exit = instance.next_exit()
        record.has_been_manually_stopped = True
        if not await self._gave_up_restarting(instance):
            await self._signal(instance, wanted, thaw=True)
            if not await within(exit, None if timeout < 0 else timeout):
                log.info("container %s did not end %s s after signal %s: killing it", record.id[:12], timeout, wanted)
                await self._signal(instance, signals.SIGKILL, thaw=True)
                if not await within(exit, KILL_PATIENCE):
                    raise SystemFault(f"cannot stop container: {record.id}: it did not end after SIGKILL")
        self.publish(record, "stop")

    async def _gave_up_restarting(self, instance: Instance) -> bool:
        """Was it between two runs, and is now exited? One that was just being started again has a process by then."""
        if instance.record.state.status != "restarting":
            return False
        async with instance.lock:
            if instance.record.state.status != "restarting":
                return False
            self._cancel_restart(instance)
            instance.record.state.status = "exited"
            await self._index.settle(instance)
            instance.announce_exit(Exit(instance.record.state.exit_code))
        return True

    async def kill(self, instance: Instance, signal: str) -> None:
        wanted = parse_signal(signal or "SIGKILL")
        record = instance.record
        if not record.state.running:
            raise Conflict(f"container {record.id} is not running")
        meant_to_end = wanted in (signals.SIGKILL, parse_signal(record.config.stop_signal or "SIGTERM"))
        if record.state.status == "restarting" and not meant_to_end:
            raise Conflict(f"container {record.id} is restarting")
        exit = instance.next_exit()
        if meant_to_end:
            record.has_been_manually_stopped = True
        if not await self._gave_up_restarting(instance):
            # As dockerd: without a stop signal of its own every signal is one that it should take now.
            await self._signal(instance, wanted, thaw=meant_to_end or not record.config.stop_signal)
        if wanted == signals.SIGKILL:
            await within(exit, KILL_PATIENCE)
        else:
            exit.cancel()

    async def _signal(self, instance: Instance, number: int, *, thaw: bool) -> None:
        """Send a signal. A frozen process takes it only once it is thawed, which `thaw` does."""
        record = instance.record
        async with instance.lock:
            if instance.init_pidfd < 0:
                return
            process.send_signal(instance.init_pidfd, number)
            self.publish(record, "kill", signal=str(number))
            if thaw and record.state.status == "paused":
                with contextlib.suppress(Conflict):  # where a frozen process can be killed, it is gone
                    await self._pauser.resume(instance)

    # --- pause

    async def pause(self, instance: Instance, for_commit: bool = False) -> None:
        """Freeze it; `for_commit` until `unpause(for_commit=True)`, or until somebody else thaws it."""
        async with instance.lock:
            record = self._require_running(instance)
            if record.state.status == "paused":
                raise Conflict(f"container {record.id} is already paused")
            await self._pauser.pause(instance, for_commit)

    async def unpause(self, instance: Instance, for_commit: bool = False) -> None:
        async with instance.lock:
            if not for_commit or instance.record.paused_for_commit:
                await self._pauser.resume(instance)

    # --- remove

    async def remove(self, instance: Instance, force: bool, volumes: bool = False) -> None:
        """`volumes` takes the volumes without a name along, as a container that removes itself does."""
        record = instance.record
        while self._index.present(instance):
            if record.state.running:
                if not force:
                    paused = record.state.status == "paused"
                    advice = " and must be unpaused first" if paused else _STOP_FIRST
                    raise Conflict(
                        f'cannot remove container "{record.name}": container is {record.state.status}{advice}'
                    )
                await self._end_for_removal(instance)
            async with instance.lock:
                # Somebody may have started it while this waited for the lock.
                if self._index.present(instance) and not record.state.running:
                    await self._remove(instance, volumes or record.host_config.auto_remove)

    async def _end_for_removal(self, instance: Instance) -> None:
        record = instance.record
        record.has_been_manually_stopped = True
        exit = instance.next_exit()
        if not await self._gave_up_restarting(instance):
            await self._signal(instance, signals.SIGKILL, thaw=True)
        if not record.state.running:
            exit.cancel()
        elif not await within(exit, KILL_PATIENCE):
            raise SystemFault(f"cannot remove container {record.id}: it did not end after SIGKILL")

    async def _remove(self, instance: Instance, volumes: bool) -> None:
        """The record goes first: what is left of a removal that was cut off is swept at the next start."""
        record = instance.record
        code = record.state.exit_code
        record.state.status = "removing"
        await self.release(instance)
        async with self._volumes.going_with(record, volumes) as changes:
            await self._index.delete(instance, *changes)
        try:
            await threads.removals(discard_tree, self._places.directory(record.id))
            await self._release_layers(record.used_layers)
        except (HuskError, OSError) as error:
            # It has no record any more; the next start sweeps what is left of it.
            log.warning("container %s is removed, and not all that it used: %s", record.id[:12], error)
        self.publish(record, "destroy")
        instance.switchboard.finish()
        instance.announce_removal(Exit(code))

    # --- helpers

    def publish(self, record: Container, action: str, **attributes: str) -> None:
        common = {**record.config.labels, "image": record.config.image, "name": record.name}
        self._events.publish("container", action, record.id, {**common, **attributes})

    def close(self) -> None:
        """The daemon is going: containers stay, restarts are left to the next daemon."""
        self._closing = True
        for instance in self._index:
            if instance.init_pidfd >= 0:
                os.close(instance.init_pidfd)
                instance.init_pidfd = -1

    def _require_present(self, instance: Instance) -> None:
        if not self._index.present(instance):
            raise Conflict("container is marked for removal and cannot be started")

    def _require_running(self, instance: Instance) -> Container:
        record = instance.record
        if record.state.status == "restarting":
            raise Conflict(f"Container {record.id} is restarting, wait until the container is running")
        if record.state.status not in ("running", "paused"):
            raise Conflict(f"container {record.id} is not running")
        return record
