"""A container's life: it starts, it ends, it starts again as its policy says.

With `pause`, `stop` and `remove` this is the only writer of its status.

Each change happens under the container's lock and is in the store before anyone hears of it.
"""

import asyncio
import contextlib
import logging
import signal as signals
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from husk.aio.tasks import Tasks
from husk.engine.containers import health, pause, states
from husk.engine.containers.config import restart_policy
from husk.engine.containers.drivers import Drivers, Supervised, bundle_of
from husk.engine.containers.index import Companion, ContainerIndex, Exit, Instance, Publish
from husk.engine.containers.release import Releaser
from husk.engine.containers.remove import ContainerRemover
from husk.engine.model.clock import now_ns, parse_rfc3339, rfc3339
from husk.engine.model.container import Container
from husk.errors import Conflict, DiskFault, HuskError, InvalidParameter, NotModified, SystemFault, full_disk
from husk.runtime import complaints
from husk.runtime.supervise.conmon import GaveUp
from husk.watch import Watch

if TYPE_CHECKING:
    from husk.engine.containers.start import Starter

log = logging.getLogger(__name__)

KILL_PATIENCE = 10.0
_REMOVED = "container is marked for removal and cannot be started"


class Lifecycle:
    def __init__(
        self,
        *,
        index: ContainerIndex,
        drivers: Drivers,
        starter: "Callable[[], Starter]",
        releaser: Releaser,
        remover: ContainerRemover,
        companions: Sequence[Companion],
        publish: Publish,
        tasks: Tasks,
        watch: Watch | None = None,
    ) -> None:
        self._index = index
        self._assembly = drivers.assembly
        self._monitor = drivers.monitor
        self._starter = starter
        self._releaser = releaser
        self._companions = companions
        self._publish = publish
        self._remover = remover
        self._tasks = tasks
        self._onlookers = watch or Watch()
        self._closing = False

    # --- start

    async def start(self, instance: Instance, awaited: bool = False) -> None:
        """`awaited` says that it runs for somebody of this process alone, who waits for its end."""
        async with instance.lock:
            if not awaited:
                self._index.make_lasting(instance)
            self._require_present(instance)
            status = instance.record.state.status
            if status == "paused":
                raise Conflict("cannot start a paused container, try unpause instead")
            if status in ("running", "restarting"):
                raise NotModified("container is already running")
            if status in ("removing", "dead"):
                raise Conflict(_REMOVED)
            instance.rest()  # a start by the daemon, as its policy says, may be about to come
            instance.draft.change(has_been_manually_stopped=False, restart_count=0)
            await self._start(instance, awaited=awaited)

    async def _start(self, instance: Instance, *, by_policy: bool = False, awaited: bool = False) -> None:
        """`by_policy` it is tried again when it fails, as it would be after a failed run."""
        with self._onlookers.action("start", container=instance.id, image=instance.record.config.image):
            await self._bring_up(instance, by_policy, awaited)

    async def _bring_up(self, instance: Instance, by_policy: bool, awaited: bool) -> None:
        try:
            await self._make(instance, awaited)
        except BaseException as raised:
            error = full_disk(raised) or raised
            await asyncio.shield(self._start_failed(instance, error, by_policy))
            if isinstance(error, SystemFault) and not isinstance(error, DiskFault):
                raise InvalidParameter(error.message) from error
            raise error from None
        made = instance.draft.record
        begun = health.begin(made.config, made.state.health)
        after = replace(made, state=states.started(made.state, rfc3339(now_ns()), begun))
        try:
            # Who asked for it hears that it cannot be kept; a policy was agreed to before, and is kept as well as it
            # can be.
            await (self._index.settle(instance, after) if by_policy else self._index.save(instance, after, state=True))
        except DiskFault as error:
            instance.draft.record = made  # whatever of it may be written
            await asyncio.shield(self._start_failed(instance, error, by_policy))
            raise
        except BaseException:
            # The caller is cancelled: it runs, and somebody must see its end.
            self._started(instance, after)
            raise
        self._started(instance, after)

    async def _make(self, instance: Instance, awaited: bool) -> None:
        """Nothing of the container has run yet when its monitor gives up, so it can be made once more."""
        await self._releaser.clear(instance)
        try:
            await self._starter().create(instance, self._companions, awaited)
        except GaveUp as error:
            log.info("making container %s once more: %s", instance.id[:12], error.message)
            await self._releaser.release(instance)
            await self._releaser.clear(instance)
            await self._starter().create(instance, self._companions, awaited)

    def _started(self, instance: Instance, record: Container) -> None:
        instance.believe(record)  # also where the disk failed after it was written
        self._publish(instance.record, "start")
        self.watch(instance)

    async def _start_failed(self, instance: Instance, error: BaseException, by_policy: bool) -> None:
        """Leave no litter of a failed start; the record keeps the reason."""

        record = instance.record
        reason = error.message if isinstance(error, HuskError) else str(error)
        # What the runtime was never asked to do leaves the code of the last run, if that was none of success.
        before = record.state.exit_code or complaints.CANNOT_START
        code = complaints.exit_code(reason) if isinstance(error, SystemFault) else before
        await self._releaser.release(instance)
        # The daemon goes in the middle of it: the next one finds the container as it was.
        cut_off = isinstance(error, asyncio.CancelledError)
        record = instance.draft.record
        again = by_policy and not cut_off and self._starts_again(record, code)
        state = states.failed(record.state, code, reason, again=again, cut_off=cut_off)
        record = replace(record, state=state, restart_count=record.restart_count + again)
        await self._index.settle(instance, record)
        self._publish(record, "die", exitCode=str(code))
        instance.switchboard.finish()
        instance.announce_exit(Exit(code, reason))
        if again:
            instance.restart_delay = restart_policy.next_delay(instance.restart_delay, 0)
            self.schedule_restart(instance, instance.restart_delay)
        elif record.host_config.auto_remove:
            await self._remover.remove_locked(instance, volumes=True)

    # --- end

    def watch(self, instance: Instance) -> None:
        """See the end of the container, with all output written."""
        if (supervised := instance.supervised) is not None:  # else the daemon closes
            self._tasks.spawn(self._watch(instance, supervised), f"watch {instance.id[:12]}")
        for companion in self._companions:
            companion.running(instance)

    async def _watch(self, instance: Instance, supervised: Supervised) -> None:
        await supervised.wait()
        async with instance.lock:
            try:
                if self._index.present(instance) and instance.record.state.status in ("running", "paused"):
                    await self.ended(instance)
            finally:  # whatever went wrong: there is no more to hear
                instance.switchboard.finish()

    async def ended(self, instance: Instance, finished_ns: int | None = None) -> None:
        """Record the end of the process, release what it held, tell everybody, then apply the container's policy.

        In this order, as with dockerd: who sees or hears of the end may count on its ports, addresses and networks
        being free. So memory says "running" until all is released; the store, for the next daemon, knows before.
        """
        for companion in self._companions:
            try:
                companion.ended(instance)
            except (HuskError, OSError):
                log.exception("container %s has ended, and not all that goes with it", instance.id[:12])
        record = instance.record
        bundle = bundle_of(record, self._assembly.paths)
        code = self._monitor.exit_status(bundle)
        error = ""
        if code is None:
            # The monitor was killed or the host went down: what it watched must not live on unwatched.
            code = 255
            if instance.process is not None:
                code = 137
                await pause.thaw(self._assembly, record)
                instance.process.signal(signals.SIGKILL)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(KILL_PATIENCE):
                        await instance.process.wait()
            error = "the container's monitor ended without an exit status"
        started = parse_rfc3339(record.state.started_at)
        finished = finished_ns or now_ns()
        told_of_oom = record.state.oom_killed
        oom_killed = told_of_oom or self._monitor.oom(bundle) or self._assembly.oom_killed(self._cgroup(record))
        again = self._starts_again(record, code)
        after = states.ended(record.state, rfc3339(finished), code, error, oom_killed=oom_killed, again=again)
        goes = record.host_config.auto_remove and not instance.keepers
        instance.draft.change(paused_for_commit=False, restart_count=record.restart_count + again)
        if not goes:  # else its record is about to go: a daemon that comes before that finds the process ended
            await self._index.settle(instance, replace(instance.draft.record, state=after), ahead=True)
        if after.oom_killed and not told_of_oom:
            self._publish(record, "oom")
        duration = max(0, finished - started) // 10**9
        # With a log there may be somebody who reads it to its end: that stays until everybody has heard of the end.
        unread = record.host_config.log_config.type == "none"
        await self._releaser.release(instance, for_good=goes and unread)
        record = replace(instance.draft.record, state=after)
        instance.believe(record)
        self._publish(record, "die", exitCode=str(code), execDuration=str(duration))
        exit = Exit(code, error, after.oom_killed)
        instance.switchboard.finish()
        instance.announce_exit(exit)
        if again:
            instance.restart_delay = restart_policy.next_delay(instance.restart_delay, duration)
            self.schedule_restart(instance, instance.restart_delay)
        elif goes:
            await self._remover.remove_locked(instance, volumes=True, exit=exit)

    def _starts_again(self, record: Container, code: int) -> bool:
        """Return True if its policy starts the container again after an end with this code; never while we close."""
        return not self._closing and restart_policy.should_restart(
            record.host_config.restart_policy, code, record.restart_count, record.has_been_manually_stopped
        )

    def schedule_restart(self, instance: Instance, delay: float) -> None:
        timer = self._tasks.spawn(self._restart_later(instance, delay), f"restart {instance.id[:12]}")
        instance.life = states.waiting(instance.life, timer)

    async def _restart_later(self, instance: Instance, delay: float) -> None:
        await asyncio.sleep(delay)
        async with instance.lock:
            if not self._index.present(instance) or instance.pending_restart is not asyncio.current_task():
                return
            instance.rest()
            try:
                await self._start(instance, by_policy=True)
            except (HuskError, OSError) as error:
                log.warning("container %s did not restart: %s", instance.id[:12], error)

    def _cgroup(self, record: Container) -> str:
        return self._assembly.paths.cgroup(record.id, record.host_config.cgroup_parent)

    def leave_restarts(self) -> None:
        """The daemon is going: whether what ends now starts again is left to the next one."""
        self._closing = True

    def close(self) -> None:
        """The daemon is gone soon: containers stay, restarts are left to the next one."""
        self.leave_restarts()
        for instance in self._index:
            if instance.process is not None:
                instance.rest()

    def _require_present(self, instance: Instance) -> None:
        if not self._index.present(instance):
            raise Conflict(_REMOVED)
