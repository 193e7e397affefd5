"""What does a running container hold on the host, and how is it given back? One function, safe to call at any time."""

import asyncio
import logging
import os
from collections.abc import Awaitable

from husk.engine.containers.index import Instance
from husk.engine.containers.joining import release_shm
from husk.engine.containers.places import Places
from husk.engine.containers.prepare import discard_bundle
from husk.engine.containers.staging import Stager
from husk.engine.model.container import Container
from husk.engine.networks.service import Networks
from husk.errors import HuskError, SystemFault
from husk.kernel import cgroup_parents, cgroups
from husk.runtime.oci import Runtimes

log = logging.getLogger(__name__)


class Releaser:
    def __init__(self, places: Places, runtimes: Runtimes, networks: Networks, stager: Stager) -> None:
        self._places = places
        self._runtimes = runtimes
        self._networks = networks
        self._stager = stager

    async def release(self, instance: Instance) -> None:
        """Give back what a running container holds on the host. Safe to call twice, and on one that never ran."""
        record = instance.record
        if instance.init_pidfd >= 0:
            os.close(instance.init_pidfd)
            instance.init_pidfd = -1
        bundle = self._places.bundle_directory(record.id)
        if bundle.exists():
            await _quietly(self._forget(record))
            await _quietly(asyncio.to_thread(self._clear_cgroup, record))
        await asyncio.gather(
            _quietly(self._unmount(instance)),
            _quietly(self._networks.disconnect(record)),
        )
        if record.host_config.ipc_mode == "shareable":
            await _quietly(asyncio.to_thread(release_shm, self._places, record.id))
        record.state.pid, record.monitor_pid, record.monitor_started = 0, 0, 0
        if bundle.exists():
            await asyncio.to_thread(discard_bundle, self._places, record.id)

    async def _forget(self, record: Container) -> None:
        await self._runtimes.of(record.host_config.runtime).delete(record.id, force=True)

    async def _unmount(self, instance: Instance) -> None:
        """A copy that is under way still needs it all, and unmounts it at its own end."""
        if not instance.root_users or instance.record.state.status == "removing":
            await asyncio.to_thread(self._places.root(instance.id).unmount)
            await self._stager.unmount(instance.record)

    def _clear_cgroup(self, record: Container) -> None:
        """A runtime that was cut off leaves its cgroup; a container in the host's pid namespace leaves processes."""
        path = self._places.cgroup(record)
        try:
            cgroups.remove(path)
        except SystemFault:
            cgroups.kill_all(path)
            cgroups.remove(path)
        if record.host_config.cgroup_parent:
            cgroup_parents.remove(path)


async def _quietly(work: Awaitable[None]) -> None:
    """Releasing goes on past a failure: the rest must be given back too."""
    try:
        await work
    except (HuskError, OSError) as error:
        log.warning("while releasing a container: %s", error)
