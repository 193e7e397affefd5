"""How does a container get its process? Network, mounts, files, bundle, monitor, in the order they need each other.

What fails half-way is given back by `release`, which the caller sees to.
"""

import asyncio
from collections.abc import Iterable

from husk.engine.containers import procfs
from husk.engine.containers.companions import Companion
from husk.engine.containers.index import Index, Instance
from husk.engine.containers.places import Places
from husk.engine.containers.plan import seccomp_profile
from husk.engine.containers.prepare import prepare
from husk.engine.containers.staging import Stager
from husk.engine.host import Host
from husk.engine.model.container import Container
from husk.engine.networks.service import Networks
from husk.kernel import process
from husk.runtime.conmon import Monitor
from husk.runtime.oci import Runtimes
from husk.runtime.precompiled import CompiledFilters
from husk.storage.layers import LayerStore


class Starter:
    def __init__(
        self,
        index: Index,
        places: Places,
        layers: LayerStore,
        networks: Networks,
        stager: Stager,
        monitor: Monitor,
        runtimes: Runtimes,
        host: Host,
    ) -> None:
        self._index = index
        self._places = places
        self._layers = layers
        self._networks = networks
        self._stager = stager
        self._monitor = monitor
        self._runtimes = runtimes
        self._host = host
        self._filters = CompiledFilters()

    async def create(self, instance: Instance, companions: Iterable[Companion]) -> None:
        """Make the container's process and let it run; its record then has the pids."""
        self._monitor.expect()
        instance.holds = True
        record = instance.record
        runtime = self._runtimes.get(record.host_config.runtime)
        for companion in companions:
            await companion.starting(instance)
        network = await self._networks.connect(record)
        lower = [str(self._places.mount_points_layer), *self._layers.lower(record.layers)]
        annotations = await self._filters.annotations(seccomp_profile(record.host_config, self._host))
        await self._stager.mount(record)
        await asyncio.to_thread(
            prepare,
            record,
            self._places,
            self._host,
            lower,
            network,
            annotations,
            lambda reference: self._index.find(reference).record,
        )
        bundle = self._places.bundle(record)
        mounts = self._own_mounts(record) if runtime.known_files else None
        created = await self._monitor.create(bundle, runtime, mounts=mounts)
        record.state.pid = created.pid
        record.monitor_pid = created.monitor_pid
        record.monitor_started = process.start_time(created.monitor_pid) or 0
        instance.init_pidfd = process.pidfd_open(created.pid)
        config = record.host_config
        own = ([], []) if config.privileged else (config.masked_paths or [], config.readonly_paths or [])
        await asyncio.to_thread(procfs.secure, created.pid, *own)
        if instance.switchboard:
            instance.switchboard.connect(await self._monitor.attach(bundle))
        await runtime.start(record.id)

    def _own_mounts(self, record: Container) -> list[str] | None:
        """The mount points that the container is made of; None when it needs others of the host's too."""
        config = record.host_config
        if config.ipc_mode not in ("private", "none") or any(point.type != "tmpfs" for point in record.mounts):
            return None
        if record.sandbox_path.startswith("/proc/"):
            return [str(self._places.root(record.id).merged)]
        return [str(self._places.root(record.id).merged), *filter(None, [record.sandbox_path])]
