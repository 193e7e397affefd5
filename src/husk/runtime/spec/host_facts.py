"""The rights, limits and control groups that containers can get on this host: asked once, when the daemon starts.

Limits for a container that asks for more than this host allows: it gets what there is, and a warning.

A daemon in a virtual machine or another container often lacks rights (CAP_SYS_RESOURCE, a cgroup controller). The
runtimes would refuse such a container; for the user a container with a smaller limit is worth more.
"""

import resource
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from husk.kernel import cgroups
from husk.runtime.spec import capabilities
from husk.runtime.spec.document import Resources, Rlimit, RuntimeContainer

_UNLIMITED = 2**64 - 1
_UNSET = Resources()


class HostFacts(msgspec.Struct, frozen=True):
    """The rights and limits of containers on this host. `hard_limits` maps RLIMIT_x to the daemon's own (-1: none)."""

    capabilities: frozenset[str] = frozenset(capabilities.ALL)
    hard_limits: Mapping[str, int] = msgspec.field(default_factory=dict)
    oom_score_adj: int = 0
    cgroup_mode: cgroups.Mode = "v2"
    controllers: frozenset[str] = frozenset({"cpu", "cpuset", "io", "memory", "pids"})
    swap_limit: bool = True
    block_weight: bool = True
    realtime: bool = True
    apparmor: bool = False

    @property
    def may_raise(self) -> bool:
        """True if limits may be raised and the OOM score lowered."""
        return "CAP_SYS_RESOURCE" in self.capabilities

    @property
    def cgroup_v2(self) -> bool:
        return self.cgroup_mode == "v2"


def read_host_facts() -> HostFacts:
    """Ask the kernel; once at the start of the daemon."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    trees = cgroups.hierarchies()
    mode = cgroups.mode_of(trees)
    if mode == "v2":
        # The root has no such file: ask its children, and believe in it while there are none.
        swap = all((group.parent / "memory.swap.max").exists() for group in cgroups.ROOT.glob("*/memory.current"))
    else:
        swap = (cgroups.ROOT / "memory" / "memory.memsw.limit_in_bytes").exists()
    return HostFacts(
        capabilities=capabilities.from_mask(int(status["CapBnd"], 16) & int(status["CapEff"], 16)),
        hard_limits={
            name: resource.getrlimit(getattr(resource, name))[1] for name in dir(resource) if name.startswith("RLIMIT_")
        },
        oom_score_adj=int(Path("/proc/self/oom_score_adj").read_text()),
        cgroup_mode=mode,
        controllers=cgroups.controllers_of(trees),
        swap_limit=swap,
        block_weight=_block_weight(mode),
        realtime=mode != "v2" and (cgroups.ROOT / "cpu" / "cpu.rt_runtime_us").exists(),
        apparmor=_apparmor(),
    )


def _block_weight(mode: cgroups.Mode) -> bool:
    names = ("io.weight", "io.bfq.weight") if mode == "v2" else ("blkio.weight", "blkio.bfq.weight")
    if mode != "v2":
        return any((cgroups.ROOT / "blkio" / name).exists() for name in names)
    groups = [group.parent for group in cgroups.ROOT.glob("*/io.max")]
    return not groups or any((group / name).exists() for group in groups for name in names)


def _apparmor() -> bool:
    try:
        return Path("/sys/module/apparmor/parameters/enabled").read_text().startswith("Y")
    except OSError:
        return False


def online(path: str) -> str:
    """The numbers of processors or memory nodes that are there, from a file of /sys such as `.../cpu/online`."""
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return "0"


def clamp(spec: RuntimeContainer, host: HostFacts) -> tuple[RuntimeContainer, list[str]]:
    """The container that this host can run, and what the user should know about the difference."""
    warnings: list[str] = []
    rlimits = tuple(_rlimit(limit, host, warnings) for limit in spec.rlimits)
    score = spec.oom_score_adj
    if score is not None and score < host.oom_score_adj and not host.may_raise:
        warnings.append(
            f"This host does not allow an OOM score adjustment below {host.oom_score_adj}; {score} was asked for."
        )
        score = host.oom_score_adj
    missing = [name for name in spec.capabilities if name not in host.capabilities]
    if missing:
        warnings.append(f"This host does not have the capabilities {', '.join(missing)}; the container runs without.")
    kept = tuple(name for name in spec.capabilities if name in host.capabilities)
    resources = _resources(spec.resources, host, warnings)
    return replace(spec, rlimits=rlimits, oom_score_adj=score, capabilities=kept, resources=resources), warnings


def _rlimit(limit: Rlimit, host: HostFacts, warnings: list[str]) -> Rlimit:
    ceiling = host.hard_limits.get(limit.type, -1)
    if host.may_raise or ceiling < 0 or _height(limit.hard) <= ceiling:
        return limit
    name = limit.type.removeprefix("RLIMIT_").lower()
    warnings.append(f"This host does not allow a hard limit of {name} above {ceiling}; {limit.hard} was asked for.")
    return Rlimit(limit.type, min(_height(limit.soft), ceiling), ceiling)


def _height(value: int) -> int:
    return _UNLIMITED if value < 0 else value


# Which controller each limit needs; the word of the warning is Docker's.
_NEEDS = (
    (
        "memory",
        ("memory", "memory_swap", "memory_reservation", "memory_swappiness", "oom_kill_disable"),
        "memory limit",
    ),
    ("cpu", ("cpu_shares", "cpu_quota", "cpu_period", "cpu_realtime_runtime", "cpu_realtime_period"), "CPU limit"),
    ("cpuset", ("cpuset_cpus", "cpuset_mems"), "cpuset"),
    ("pids", ("pids_limit",), "pids limit"),
)
_BLOCK_LIMITS = (
    "blkio_weight",
    "blkio_weight_device",
    "blkio_read_bps",
    "blkio_write_bps",
    "blkio_read_iops",
    "blkio_write_iops",
)
# Limits that a host with the controller may still lack, and what Docker says then.
_BLOCK_WEIGHTS = (
    ("blkio_weight", "weight", "Weight"),
    ("blkio_weight_device", "weight_device", "Weight-device"),
)


def _resources(limits: Resources, host: HostFacts, warnings: list[str]) -> Resources:
    block = "io" if host.cgroup_v2 else "blkio"
    for controller, names, word in (*_NEEDS, (block, _BLOCK_LIMITS, "block I/O limit")):
        wanted = [name for name in names if getattr(limits, name) not in (None, "", ())]
        if wanted and controller not in host.controllers:
            warnings.append(
                f"Your kernel does not support {word} capabilities or the cgroup is not mounted. Limitation discarded."
            )
            limits = replace(limits, **{name: getattr(_UNSET, name) for name in wanted})
    for name, word, thing in _BLOCK_WEIGHTS:
        if getattr(limits, name) and not host.block_weight:
            warnings.append(
                f"Your kernel does not support Block I/O {word} or the cgroup is not mounted. {thing} discarded."
            )
            limits = replace(limits, **{name: getattr(_UNSET, name)})
    if (limits.cpu_realtime_period or limits.cpu_realtime_runtime) and not host.realtime:
        warnings.append("Your kernel does not support CPU real-time scheduler. Real-time limits discarded.")
        limits = replace(limits, cpu_realtime_period=None, cpu_realtime_runtime=None)
    if limits.oom_kill_disable and not limits.memory and not host.cgroup_v2:
        warnings.append(
            "OOM killer is disabled for the container, but no memory limit is set, this can result in the system "
            "running out of resources."
        )
    if limits.memory_swap is not None and limits.memory_swap > 0 and not host.swap_limit:
        warnings.append(
            "Your kernel does not support swap limit capabilities or the cgroup is not mounted. "
            "Memory limited without swap."
        )
    if not host.swap_limit:
        limits = replace(limits, memory_swap=None)
    if host.cgroup_v2 and limits.oom_kill_disable:
        warnings.append("Your kernel does not support OomKillDisable. OomKillDisable discarded.")
        limits = replace(limits, oom_kill_disable=None)
    if host.cgroup_v2 and limits.memory_swappiness is not None and limits.memory_swappiness >= 0:
        warnings.append(
            "Your kernel does not support memory swappiness capabilities or the cgroup is not mounted. "
            "Memory swappiness discarded."
        )
        limits = replace(limits, memory_swappiness=None)
    return limits
