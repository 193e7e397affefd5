"""Limits for a container that asks for more than this host allows: it gets what there is, and a warning.

A daemon in a virtual machine or another container often lacks rights (CAP_SYS_RESOURCE, a cgroup controller). The
runtimes would refuse such a container; for the user a container with a smaller limit is worth more.
"""

from msgspec.structs import replace

from husk.runtime.spec.document import Resources, Rlimit, RuntimeContainer
from husk.runtime.spec.host_facts import HostFacts

_UNLIMITED = 2**64 - 1
_UNSET = Resources()


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
