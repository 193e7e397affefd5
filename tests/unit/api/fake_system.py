"""A daemon's word about itself and its host, for tests: always the same."""

from husk.config import RuntimeConfig
from husk.engine.system import Component, DaemonInfo


class FakeSystem:
    version = "1.2.3"
    trouble: tuple[str, ...] = ()

    def warnings(self) -> list[str]:
        return list(self.trouble)

    def info(self) -> DaemonInfo:
        return DaemonInfo(
            engine_id="an-id",
            version=self.version,
            python_version="3.11.0",
            hostname="host",
            kernel="6.1.0",
            operating_system="Debian GNU/Linux 12 (bookworm)",
            os_version="12",
            machine="x86_64",
            architecture="amd64",
            cpus=2,
            memory=1 << 33,
            cgroup_version="2",
            controllers=frozenset({"cpu", "cpuset", "memory", "pids"}),
            swap_limit=True,
            ip_forwarding=True,
            backing_filesystem="extfs",
            default_runtime="crun",
            runtimes={"crun": RuntimeConfig(path="/usr/bin/crun"), "kata": RuntimeConfig("/k", ("-v",))},
            init_binary="tini",
            security_options=("name=seccomp,profile=builtin",),
            warnings=(),
        )

    async def disk(self) -> tuple[int, int]:
        return 500_000_000_000, 20_500_000_000

    async def features(self) -> dict[str, str]:
        return {"crun": '{"ociVersionMax":"1.2.0"}'}

    async def components(self) -> tuple[Component, ...]:
        return (Component("conmon", "2.1.6", "unknown"),)
