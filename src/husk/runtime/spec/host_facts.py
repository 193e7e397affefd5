"""The rights, limits and control groups that containers can get on this host: asked once, when the daemon starts."""

import resource
from collections.abc import Mapping
from pathlib import Path

import msgspec

from husk.kernel import cgroups
from husk.runtime.spec import capabilities


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
