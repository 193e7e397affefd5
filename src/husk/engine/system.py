"""Facts about this daemon and its host, behind `docker info` and `docker version`."""

import asyncio
import hashlib
import os
import re
import socket
import sys
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from husk.config import Config, RuntimeConfig
from husk.engine.host import EngineHost
from husk.errors import HuskError
from husk.runtime import host_files, process
from husk.text import documents
from husk.text.patterns import pattern
from husk.version import __version__

STORAGE_DRIVER = "overlay2"
CGROUP_DRIVER = "cgroupfs"

# Go's names of architectures, which the API uses for images and versions.
_GO_ARCHITECTURES = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "armv7l": "arm",
    "armv6l": "arm",
    "i686": "386",
    "ppc64le": "ppc64le",
    "riscv64": "riscv64",
    "s390x": "s390x",
}
_VERSION = pattern(r"(?<!\d)\d+\.\d+\S*")
_COMMIT = pattern(r"^commit: (\S+)", re.MULTILINE)


class DaemonInfo(msgspec.Struct, frozen=True):
    """The host and this daemon's place on it, as they are while the daemon runs."""

    engine_id: str
    version: str
    python_version: str
    hostname: str
    kernel: str
    operating_system: str
    os_version: str
    machine: str
    architecture: str
    cpus: int
    memory: int
    cgroup_version: str
    controllers: frozenset[str]
    swap_limit: bool
    ip_forwarding: bool
    backing_filesystem: str
    default_runtime: str
    runtimes: Mapping[str, RuntimeConfig]
    init_binary: str
    security_options: tuple[str, ...]
    warnings: tuple[str, ...]


class Component(msgspec.Struct, frozen=True):
    """A program that the engine works with, in the version found on this host."""

    name: str
    version: str
    commit: str


class System:
    """Answers questions about the daemon as a whole. `runtimes` are those that containers may name."""

    def __init__(
        self,
        config: Config,
        host: EngineHost,
        runtimes: Mapping[str, RuntimeConfig],
        trouble: Callable[[], str] = lambda: "",
    ) -> None:
        """`trouble` is what keeps changes from being written at present, if anything does."""
        self._trouble = trouble
        self._host = host
        self._data_root = config.data_root
        self._facts = _gather(config, host, runtimes)
        self._components: tuple[Component, ...] | None = None
        self._features: dict[tuple[str, ...], str] = {}

    @property
    def version(self) -> str:
        return self._facts.version

    def reload(self, config: Config, runtimes: Mapping[str, RuntimeConfig] | None = None, default: str = "") -> None:
        """The daemon's settings have changed, perhaps also the runtimes; the host is as before."""
        self._host = replace(self._host, default_runtime=default or self._host.default_runtime)
        self._facts = _gather(config, self._host, runtimes or self._facts.runtimes)

    def info(self) -> DaemonInfo:
        return self._facts

    def warnings(self) -> list[str]:
        """Return a warning of the trouble that there is at this moment, if there is any."""
        trouble = self._trouble()
        return [f"WARNING: {trouble}: changes are refused until there is room; removing works"] if trouble else []

    async def disk(self) -> tuple[int, int]:
        """The size of the disk that the data root is on, and the bytes of it that are free."""
        return await asyncio.to_thread(host_files.disk, self._data_root)

    async def components(self) -> tuple[Component, ...]:
        """The programs beside the engine, asked once for their versions."""
        if self._components is None:
            default = self._facts.default_runtime
            programs = {"conmon": self._host.conmon_path}
            if (runtime := self._facts.runtimes.get(default)) is not None:
                programs[default] = runtime.path
            if self._host.init_path:
                programs["docker-init"] = self._host.init_path
            asked = (_ask(name, path) for name, path in programs.items() if path)
            self._components = tuple(await asyncio.gather(*asked))
        return self._components

    async def features(self) -> dict[str, str]:
        """Return the features of each runtime that tells them, in the words of OCI's runtime specification. Each
        program is asked once."""
        programs = {name: (runtime.path, *runtime.args) for name, runtime in self._facts.runtimes.items()}
        unknown = [each for each in dict.fromkeys(programs.values()) if each not in self._features]
        told = await asyncio.gather(*map(_features_of, unknown))
        self._features.update(zip(unknown, told, strict=True))
        return {name: found for name, program in programs.items() if (found := self._features.get(program))}


async def _features_of(program: Sequence[str]) -> str:
    """A document, without what makes it readable; empty where the runtime knows no such question."""
    try:
        answer = await process.run([*program, "features"], timeout=5.0)
        document = documents.decode(answer.stdout) if answer.returncode == 0 else None
    except (HuskError, OSError, documents.MalformedDocument):
        return ""
    return msgspec.json.encode(document).decode() if isinstance(document, dict) else ""


async def _ask(name: str, path: str) -> Component:
    try:
        answer = await process.run([path, "--version"], timeout=5.0)
    except (HuskError, OSError):
        return Component(name, "", "")
    return read_version(name, answer.stdout.decode(errors="replace"))


def read_version(name: str, text: str) -> Component:
    """From what `--version` prints; every program has its own words around the number."""
    version = _VERSION.search(text)
    commit = _COMMIT.search(text)
    return Component(name, version[0] if version else "", commit[1] if commit else "")


def is_contained(cgroups: str) -> bool:
    """Return True if the first process is in a cgroup of somebody else's: then this is no machine of its own."""
    return any(line and not line.endswith(("/", "/init.scope")) for line in cgroups.splitlines())


def _gather(config: Config, host: EngineHost, runtimes: Mapping[str, RuntimeConfig]) -> DaemonInfo:
    release = _os_release(host_files.text("/etc/os-release") or host_files.text("/usr/lib/os-release"))
    uname = os.uname()
    controllers = host.limits.controllers
    return DaemonInfo(
        engine_id=engine_id(host_files.text("/etc/machine-id"), str(config.data_root)),
        version=__version__,
        python_version=sys.version.split()[0],
        hostname=socket.gethostname(),
        kernel=uname.release,
        operating_system=release.get("PRETTY_NAME", "Linux")
        + (" (containerized)" if is_contained(host_files.text("/proc/1/cgroup")) else ""),
        os_version=release.get("VERSION_ID", ""),
        machine=uname.machine,
        architecture=_GO_ARCHITECTURES.get(uname.machine, uname.machine),
        cpus=len(os.sched_getaffinity(0)),
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        cgroup_version="2" if host.cgroup_v2 else "1",
        controllers=controllers,
        swap_limit=host.swap_limit,
        ip_forwarding=host_files.text("/proc/sys/net/ipv4/ip_forward").strip() == "1",
        backing_filesystem=filesystem_of(str(config.data_root), host_files.text("/proc/self/mountinfo")),
        default_runtime=host.default_runtime,
        runtimes=dict(runtimes),
        init_binary=os.path.basename(host.init_path),
        security_options=_security_options(config, host),
        warnings=_warnings(config, host, controllers),
    )


def _security_options(config: Config, host: EngineHost) -> tuple[str, ...]:
    found = [f"name=seccomp,profile={config.containers.seccomp_profile}"]
    if host.cgroup_v2:
        found.append("name=cgroupns")
    if config.containers.no_new_privileges:
        found.append("name=no-new-privileges")
    return tuple(found)


def _warnings(config: Config, host: EngineHost, controllers: frozenset[str]) -> tuple[str, ...]:
    """dockerd's words: clients show them as they are."""
    found = []
    if config.tls is None or not config.tls.verify:
        scheme, lacking = ("http", "encryption") if config.tls is None else ("https", "TLS client verification")
        found = [
            f"[DEPRECATION NOTICE]: API is accessible on {scheme}://{where} without {lacking}.\n"
            "         Access to the remote API is equivalent to root access on the host."
            for where in (h.removeprefix("tcp://") for h in config.hosts if h.startswith("tcp://"))
        ]
    for controller, lacking in (("memory", "memory limit"), ("cpuset", "cpuset"), ("pids", "pids limit")):
        if controller not in controllers:
            found.append(f"WARNING: No {lacking} support")
    if "memory" in controllers and not host.swap_limit:
        found.append("WARNING: No swap limit support")
    return tuple(found)


def engine_id(machine_id: str, data_root: str) -> str:
    """The same for the same daemon on the same host, in the form of a UUID."""
    digest = hashlib.sha256(f"{machine_id.strip()}\0{data_root}".encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


def filesystem_of(path: str, mountinfo: str) -> str:
    """The type of the file system that a path lies on: the deepest mount point above it."""
    best, kind = "", "unknown"
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        point = left.split(" ")[4]
        if len(point) >= len(best) and (path == point or path.startswith(point.rstrip("/") + "/")):
            best, kind = point, right.split(" ")[0]
    return "extfs" if kind in ("ext2", "ext3", "ext4") else kind


def _os_release(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {key: value.strip().strip("\"'") for key, separator, value in pairs if separator}
