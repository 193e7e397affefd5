"""Give back what a running container holds on the host. One function, safe to call at any time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from husk.aio import threads
from husk.aio.tasks import Tasks
from husk.engine.containers import states
from husk.engine.containers.clearing import Clearing
from husk.engine.containers.drivers import Assembly, Networks, Runtimes
from husk.engine.containers.index import Instance
from husk.engine.containers.mounts import Stager
from husk.engine.model.container import Container, Draft
from husk.errors import HuskError

log = logging.getLogger(__name__)

# So many removed by force at the same time are a crowd.
CROWD = 8


class _Done(NamedTuple):
    """The outcome of the steps that need nobody's help."""

    steps: list[bool]
    needs_runtime: bool = False
    """The bundle is still there, because it takes the runtime to end this."""
    uncleared: bool = False
    """The bundle and the control group are still there, for later, and what the runtime knows of it."""
    little: bool = False
    """So little is on the disk that it may go as late."""
    discarded: bool = False
    """Nothing of it is on the disk any more."""


class Releaser:
    def __init__(
        self, assembly: Assembly, runtimes: Runtimes, networks: Networks, stager: Stager, tasks: Tasks
    ) -> None:
        self._assembly = assembly
        self._runtimes = runtimes
        self._networks = networks
        self._stager = stager
        self._tasks = tasks
        self._going = 0
        self._clearing: Clearing | None = None

    @contextmanager
    def removal(self) -> Iterator[None]:
        """While the block lasts, a container is being removed by force."""
        self._going += 1
        try:
            yield
        finally:
            self._going -= 1
            if not self._going and self._clearing is not None:
                self._clearing.begin()

    async def release(self, instance: Instance, *, for_good: bool = False) -> None:
        """Give back what it holds; safe to call twice, and on a container that never ran. The draft says so then, which
        the caller records. One that goes `for_good` now may lose what it has on the disk in the same visit, and is
        `Discarded` then; the caller removes the record."""
        if not states.holds(instance.life) and not instance.root_users:
            return
        record = instance.draft.record
        doomed = instance.doomed
        instance.rest()
        # A copy that is under way still needs its file systems, and unmounts them at its own end.
        unmount = not instance.root_users or record.state.status == "removing"
        late = doomed and self._can_wait(record)
        done = await threads.releases(self._let_go, record, unmount, late, for_good)
        steps = done.steps
        if done.needs_runtime:
            steps.append(await _quietly(self._with_the_runtime(record, unmount)))
        if unmount:
            steps.append(await _quietly(self._stager.unmount(record)))
        steps.append(await _quietly(self._networks.disconnect(instance.draft)))
        _forget_pids(instance.draft)
        instance.life = states.released(
            whole=unmount and all(steps), uncleared=done.uncleared, little=done.little, discarded=done.discarded
        )

    async def clear(self, instance: Instance) -> None:
        """Clear up what was left for later, with its lock held, before it is started again."""
        if states.is_uncleared(instance.life):
            await threads.releases(self._clear, instance.record, False)
            instance.life = states.cleared(instance.life)

    def clear_later(self, instance: Instance) -> bool:
        """Clear what was left of a container without a record, when all others have gone. Return True if that is all
        that was left."""
        life = instance.life
        if not states.is_uncleared(life):
            return False
        little = isinstance(life, states.Uncleared) and life.little
        instance.life = states.cleared(life)
        if self._clearing is None:
            self._clearing = Clearing(self._tasks)
        self._clearing.put(instance.id, partial(self._clear, instance.record, little))
        if not self._going:
            self._clearing.begin()
        return little

    async def close(self) -> None:
        """The daemon is going: nothing is left for later any more."""
        if self._clearing is not None:
            await self._clearing.finish()

    def forget(self, instance: Instance) -> None:
        """Nothing of it is on the host: let memory say so too."""
        self._networks.forget(instance.draft)
        _forget_pids(instance.draft)
        instance.believe(instance.draft.record)
        instance.life = states.settled(instance.life)

    def _can_wait(self, record: Container) -> bool:
        """Return True if the container's control group, which is empty by then, may be there a while longer. With
        others' processes there may be some that must end now; where a client named what is above it, he may look."""
        config = record.host_config
        room = self._clearing is None or not self._clearing.full
        return self._going >= CROWD and room and not config.pid_mode and not config.cgroup_parent

    def _let_go(self, record: Container, unmount: bool, late: bool, for_good: bool) -> _Done:
        """All that needs nobody's help, in one go: a thread for each step would take longer than the step. `late`
        leaves what `clear` does for later, `for_good` takes what it has on the disk too, where that is little."""
        assembly = self._assembly
        bundle = assembly.has_bundle(record.id)
        steps, ended = [], False
        if bundle:
            try:
                runtime = self._runtimes.of(record.host_config.runtime)
                if late:
                    ended = runtime.has_ended(record.id)
                else:
                    ended = runtime.forget_ended(record.id, spared=self._cgroup(record))
            except (HuskError, OSError) as error:
                log.warning("while releasing a container: %s", error)
            if ended and not late:
                steps.append(_tried(lambda: self._clear_cgroup(record)))
        if unmount and (ended or not bundle):
            steps.append(_tried(assembly.root(record.id).unmount))
        if record.host_config.ipc_mode == "shareable" and (ended or not bundle):
            steps.append(_tried(lambda: assembly.release_shm(record.id)))
        if ended and not late:
            assembly.discard_bundle(record.id)
        whole = ended and not late and unmount and all(steps)
        discarded = for_good and whole and assembly.discard_little(record.id)
        little = ended and late and unmount and all(steps) and self._has_little(record)
        return _Done(steps, bundle and not ended, ended and late, little, discarded)

    def _has_little(self, record: Container) -> bool:
        log_config = record.host_config.log_config
        rotated = log_config.type not in ("", "json-file") or "max-size" in log_config.config
        return not rotated and self._assembly.holds_little(record.id)

    def _clear(self, record: Container, discard: bool) -> None:
        """Clear up after a container that has ended; with `discard` also what it has on the disk. Safe to repeat."""
        try:
            self._runtimes.of(record.host_config.runtime).forget_ended(record.id, spared=self._cgroup(record))
            self._clear_cgroup(record)
        finally:
            # Whatever keeps the rest: who removed it counts on its files being gone.
            if discard:
                self._assembly.discard(record.id)
        # Last: it owns the rest, for the next daemon too.
        self._assembly.discard_bundle(record.id)

    async def _with_the_runtime(self, record: Container, unmount: bool) -> None:
        """For one that its runtime still has at work, or that this engine does not know the files of."""
        try:
            await self._runtimes.of(record.host_config.runtime).delete(record.id, force=True)
        finally:
            await asyncio.to_thread(self._clear_up, record, unmount)

    def _clear_up(self, record: Container, unmount: bool) -> None:
        try:
            self._clear_cgroup(record)
        finally:
            self._assembly.discard_bundle(record.id)
            if unmount:
                self._assembly.root(record.id).unmount()
            if record.host_config.ipc_mode == "shareable":
                self._assembly.release_shm(record.id)

    def _clear_cgroup(self, record: Container) -> None:
        self._assembly.clear_cgroup(self._cgroup(record), named=bool(record.host_config.cgroup_parent))

    def _cgroup(self, record: Container) -> str:
        return self._assembly.paths.cgroup(record.id, record.host_config.cgroup_parent)


def _forget_pids(draft: Draft) -> None:
    draft.change(state=replace(draft.record.state, pid=0), monitor_pid=0, monitor_started=0)


def _tried(step: Callable[[], object]) -> bool:
    """As `_quietly`, for what blocks."""
    try:
        step()
    except (HuskError, OSError) as error:
        log.warning("while releasing a container: %s", error)
        return False
    return True


async def _quietly(work: Awaitable[None]) -> bool:
    """Releasing goes on past a failure: the rest must be given back too. Whether it went well."""
    try:
        await work
    except (HuskError, OSError) as error:
        log.warning("while releasing a container: %s", error)
        return False
    return True
