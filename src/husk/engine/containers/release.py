"""Give back what a running container holds on the host. One function, safe to call at any time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from husk import threads
from husk.engine.containers.drivers import Assembly, Networks, Runtimes
from husk.engine.containers.index import Instance
from husk.engine.containers.mounts import Stager
from husk.engine.model.container import Container
from husk.errors import HuskError

log = logging.getLogger(__name__)


class Releaser:
    def __init__(self, assembly: Assembly, runtimes: Runtimes, networks: Networks, stager: Stager) -> None:
        self._assembly = assembly
        self._runtimes = runtimes
        self._networks = networks
        self._stager = stager

    async def release(self, instance: Instance) -> None:
        """Safe to call twice, and on a container that never ran."""
        if not instance.holds and not instance.root_users:
            return
        record = instance.record
        instance.let_go()
        # A copy that is under way still needs its file systems, and unmounts them at its own end.
        unmount = not instance.root_users or record.state.status == "removing"
        steps, bundle_left = await threads.releases(self._let_go, record, unmount)
        if bundle_left:
            steps.append(await _quietly(self._with_the_runtime(record, unmount)))
        if unmount:
            steps.append(await _quietly(self._stager.unmount(record)))
        steps.append(await _quietly(self._networks.disconnect(record)))
        record.state.pid, record.monitor_pid, record.monitor_started = 0, 0, 0
        instance.holds = not unmount or not all(steps)

    def forget(self, instance: Instance) -> None:
        """Nothing of it is on the host: let memory say so too."""
        self._networks.forget(instance.record)
        instance.record.state.pid, instance.record.monitor_pid, instance.record.monitor_started = 0, 0, 0
        instance.holds = False

    def _let_go(self, record: Container, unmount: bool) -> tuple[list[bool], bool]:
        """All that needs nobody's help, in one go: a thread for each step would take longer than the step. Whether the
        steps went well, and whether the bundle is still there, because it takes the runtime to end this."""
        assembly = self._assembly
        bundle = assembly.has_bundle(record.id)
        steps, ended = [], False
        if bundle:
            try:
                runtime = self._runtimes.of(record.host_config.runtime)
                ended = runtime.forget_ended(record.id, spared=self._cgroup(record))
            except (HuskError, OSError) as error:
                log.warning("while releasing a container: %s", error)
            if ended:
                steps.append(_tried(lambda: self._clear_cgroup(record)))
        if unmount and (ended or not bundle):
            steps.append(_tried(assembly.root(record.id).unmount))
        if record.host_config.ipc_mode == "shareable" and (ended or not bundle):
            steps.append(_tried(lambda: assembly.release_shm(record.id)))
        if ended:
            assembly.discard_bundle(record.id)
        return steps, bundle and not ended

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
