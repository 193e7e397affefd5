"""What does this host offer to containers? Facts gathered once, when the engine opens."""

import os
import shutil
from dataclasses import dataclass

from husk.runtime.limits import HostFacts, read_host_facts


@dataclass(frozen=True, slots=True)
class Host:
    limits: HostFacts
    machine: str
    default_runtime: str
    init_path: str
    conmon_path: str
    kernel: str = ""
    open_files: int = 0
    """The soft limit of open files that containers get; 0 for that of the daemon."""

    @property
    def cgroup_v2(self) -> bool:
        return self.limits.cgroup_v2

    @property
    def swap_limit(self) -> bool:
        return self.limits.swap_limit

    @classmethod
    def probe(cls, default_runtime: str, open_files: int = 0) -> "Host":
        return cls(
            limits=read_host_facts(),
            machine=os.uname().machine,
            kernel=os.uname().release,
            default_runtime=default_runtime,
            init_path=shutil.which("docker-init") or shutil.which("tini-static") or shutil.which("tini") or "",
            conmon_path=shutil.which("conmon") or "",
            open_files=open_files,
        )
