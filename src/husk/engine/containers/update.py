"""Later changes of a container's limits and restart policy: checked, told to the runtime if it runs, recorded."""

import asyncio
import contextlib
from collections.abc import Callable

from msgspec import structs

from husk.engine.containers.config import validate
from husk.engine.containers.config.spec import plan
from husk.engine.containers.index import ContainerIndex
from husk.engine.host import EngineHost
from husk.engine.model.container import Container
from husk.engine.model.container_config import HostConfig
from husk.errors import Conflict, SystemFault
from husk.runtime.assembly import cgroup
from husk.runtime.assembly.paths import Paths
from husk.runtime.runtimes import Runtimes
from husk.runtime.spec.document import RuntimeContainer, oci_resources
from husk.runtime.spec.users import ProcessUser

# Zero means "leave it as it is", as with dockerd.
_LIMITS = (
    "blkio_weight", "cpu_shares", "nano_cpus", "cpu_period", "cpu_quota", "cpuset_cpus", "cpuset_mems", "memory",
    "memory_swap", "memory_reservation", "cpu_realtime_period", "cpu_realtime_runtime",
)  # fmt: skip


class Updater:
    def __init__(
        self,
        index: ContainerIndex,
        paths: Paths,
        runtimes: Runtimes,
        host: EngineHost,
        publish: Callable[[Container, str], None],
    ) -> None:
        self._index = index
        self._paths = paths
        self._runtimes = runtimes
        self._host = host
        self._publish = publish

    async def update(self, reference: str, request: HostConfig) -> list[str]:
        """Apply the limits and the policy that `request` gives; returns warnings about what this host cannot do."""
        instance = self._index.find(reference)
        async with instance.lock:
            record = instance.draft.record
            try:
                if record.state.status in ("removing", "dead") or not self._index.present(instance):
                    raise Conflict('container is marked for removal and cannot be "update"')
                merged = merge(record.host_config, request)
            except Conflict as error:
                raise Conflict(f"Cannot update container {record.id}: {error.message}") from None
            ignored = validate.check_update(request, merged)
            before, known = self._plan(record, record.host_config)
            after, warnings = self._plan(record, merged)
            applies = record.state.status in ("running", "paused") and after.resources != before.resources
            if applies:
                await self._apply(record, before, after)
            try:
                await self._index.save(instance, structs.replace(record, host_config=merged))
            except Exception:
                # Whoever is cancelled meanwhile has it written all the same.
                if applies:
                    with contextlib.suppress(SystemFault):
                        await self._apply(record, after, before)
                raise
        self._publish(record, "update")
        return ignored + [warning for warning in warnings if warning not in known]

    def _plan(self, record: Container, host_config: HostConfig) -> tuple[RuntimeContainer, list[str]]:
        changed = structs.replace(record, host_config=host_config)
        return plan(changed, self._paths.of(record.id), ProcessUser(), self._host)

    async def _apply(self, record: Container, before: RuntimeContainer, after: RuntimeContainer) -> None:
        runtime, v2 = self._runtimes.of(record.host_config.runtime), self._host.cgroup_v2
        group = self._paths.cgroup(record.id, record.host_config.cgroup_parent)
        try:
            await runtime.update(record.id, oci_resources(after, v2))
            if before.resources.pids_limit is not None and after.resources.pids_limit is None:
                # crun 1.8 has no number for a limit that is taken away.
                await asyncio.to_thread(cgroup.lift_pids_limit, group)
            if before.resources.cpu_quota is not None and after.resources.cpu_quota is None:
                await asyncio.to_thread(cgroup.lift_cpu_quota, group)
        except SystemFault as error:
            # Some of it may have been applied; the record says that nothing was.
            with contextlib.suppress(SystemFault):
                await runtime.update(record.id, oci_resources(before, v2))
            raise SystemFault(f"Cannot update container {record.id}: {error.message}") from error


def merge(current: HostConfig, request: HostConfig) -> HostConfig:
    """The configuration with what the request gives. Raises Conflict where it does not fit what is set. Pure."""
    for new, name in ((request.cpu_period, "CPU Period"), (request.cpu_quota, "CPU Quota")):
        if new and current.nano_cpus:
            raise Conflict(f"Conflicting options: {name} cannot be updated as NanoCPUs has already been set")
    for set_before, name in ((current.cpu_period, "CPU Period"), (current.cpu_quota, "CPU Quota")):
        if request.nano_cpus and set_before:
            raise Conflict(f"Conflicting options: Nano CPUs cannot be updated as {name} has already been set")
    if request.memory and request.memory > current.memory_swap and request.memory_swap == 0:
        raise Conflict(
            "Memory limit should be smaller than already set memoryswap limit, update the memoryswap at the same time"
        )
    changes: dict[str, object] = {name: value for name in _LIMITS if (value := getattr(request, name))}
    if request.pids_limit is not None:
        changes["pids_limit"] = max(0, request.pids_limit)  # as dockerd writes down that there is none any more
    if request.restart_policy.name:
        if current.auto_remove and request.restart_policy.name != "no":
            raise Conflict("Restart policy cannot be updated because AutoRemove is enabled for the container")
        changes["restart_policy"] = request.restart_policy
    return structs.replace(current, **changes)
