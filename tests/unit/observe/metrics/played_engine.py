"""An engine as metrics see it: numbers, and nothing else."""

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from husk.engine.containers.stats import RunningContainer
from husk.engine.system import DaemonInfo
from husk.watch import Watch

if TYPE_CHECKING:
    from husk.composition import Engine

INFO = DaemonInfo(
    engine_id="id", version="1.2.3", python_version="3", hostname="h", kernel="6.1", operating_system="Debian",
    os_version="12", machine="x86_64", architecture="amd64", cpus=4, memory=1 << 30, cgroup_version="2",
    controllers=frozenset(), swap_limit=True, ip_forwarding=True, backing_filesystem="extfs", default_runtime="crun",
    runtimes={}, init_binary="", security_options=(), warnings=(),
)  # fmt: skip


def played(data_root: Path, runners: list[RunningContainer]) -> "Engine":
    def observe(observer: object) -> None:
        pass

    engine = SimpleNamespace(
        config=SimpleNamespace(data_root=data_root),
        system=SimpleNamespace(info=lambda: INFO),
        verbs=SimpleNamespace(
            statistics=SimpleNamespace(
                states=lambda: {"running": len(runners), "exited": 2, "paused": 1}, runners=lambda: runners
            )
        ),
        events=SimpleNamespace(listeners=3, observe=observe),
        images=SizedImages(),
        builder=SimpleNamespace(made=SimpleNamespace(cache_usage=lambda: (5, 600))),
        workers_employed=9,
        worker_processes=lambda: 1,
        watch=Watch(),
    )
    return cast("Engine", engine)


class SizedImages:
    def __len__(self) -> int:
        return 2

    def layers_count(self) -> int:
        return 4

    def layers_size(self) -> int:
        return 4096

    def blobs_usage(self) -> tuple[int, int]:
        return 6, 6000
