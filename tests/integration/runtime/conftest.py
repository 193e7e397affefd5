"""Real containers without a daemon: a busybox root, a runtime, conmon, and a check that nothing is left of them."""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from husk.kernel import cgroups, process
from husk.runtime.oci import OCIRuntime
from husk.runtime.spec import capabilities
from husk.runtime.spec.document import RuntimeContainer, oci_spec
from husk.runtime.supervise.conmon import Bundle, Monitor, MonitoredProcess
from husk.runtime.supervise.console import Console

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass
class Box:
    """One container and its monitor."""

    bundle: Bundle
    created: MonitoredProcess
    pidfd: int
    runtime: OCIRuntime
    monitor: Monitor

    async def start(self) -> None:
        await self.runtime.start(self.bundle.container_id)

    async def ended(self) -> int | None:
        """Wait for the monitor's end; the exit status that it left."""
        async with asyncio.timeout(60):
            await process.wait_exit(self.pidfd)
        return self.monitor.exit_status(self.bundle)

    async def attach(self) -> Console:
        return await self.created.attach()

    def log(self) -> bytes:
        """The log without timestamps, tags and the newlines of partial lines."""
        assert self.bundle.log_path
        whole = b""
        for line in self.bundle.log_path.read_bytes().splitlines(keepends=True):
            _, _, tag, text = line.split(b" ", 3)
            whole += text if tag == b"F" else text[:-1]
        return whole


@dataclass
class Workshop:
    """Makes containers of one runtime."""

    root: Path
    rootfs: Path
    runtime: OCIRuntime
    cgroup: str
    monitor: Monitor = field(default_factory=lambda: Monitor("/usr/bin/conmon"))
    boxes: list[Box] = field(default_factory=list)
    count: int = 0

    def spec(self, *args: str, **changes: object) -> RuntimeContainer:
        self.count += 1
        spec = RuntimeContainer(
            rootfs=str(self.rootfs),
            args=args,
            env=(PATH,),
            capabilities=capabilities.DEFAULT,
            cgroup_path=f"{self.cgroup}/{self.count}",
            namespaces={"mount": "", "pid": "", "ipc": "", "uts": ""},
        )
        return replace(spec, **changes)

    def bundle(
        self, spec: RuntimeContainer, directory: Path | None = None, stdin_open: bool = False, stdin_once: bool = False
    ) -> Bundle:
        name = spec.cgroup_path.replace("/", "-").strip("-")
        directory = directory or self.root / "bundles" / name
        directory.mkdir(parents=True)
        bundle = Bundle(name, directory, directory / "log", spec.terminal, stdin_open, stdin_once, spec.args[0])
        bundle.write_config(oci_spec(spec, cgroups.detect() == "v2"))
        return bundle

    async def create(self, bundle: Bundle) -> Box:
        created = await self.monitor.create(bundle, self.runtime)
        box = Box(bundle, created, process.pidfd_open(created.monitor_pid), self.runtime, self.monitor)
        self.boxes.append(box)
        return box

    async def make(self, *args: str, **changes: object) -> Box:
        """A created container; `stdin_open` and `stdin_once` are the bundle's, the rest is the spec's."""
        stdin_open, stdin_once = (bool(changes.pop(name, False)) for name in ("stdin_open", "stdin_once"))
        bundle = self.bundle(self.spec(*args, **changes), stdin_open=stdin_open, stdin_once=stdin_once)
        return await self.create(bundle)

    async def run(self, *args: str, **changes: object) -> tuple[int | None, bytes]:
        """Run a container to its end: status and output."""
        box = await self.make(*args, **changes)
        await box.start()
        status = await box.ended()
        return status, box.log()

    @contextlib.contextmanager
    def sealed(self) -> Iterator[OCIRuntime]:
        """The runtime as a daemon starts it. Else crun copies itself first, and a file of that stays in /tmp where
        it is killed."""
        plain, copy = self.runtime, process.sealed_copy(self.runtime.path)
        self.runtime = replace(plain, sealed=f"/proc/{os.getpid()}/fd/{copy}")
        try:
            yield self.runtime
        finally:
            self.runtime = plain
            os.close(copy)

    async def clear(self) -> None:
        for name in self.runtime.known():
            await self.runtime.delete(name, force=True)
        for box in self.boxes:
            # A monitor whose container never ended because of a failed test.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await process.wait_exit(box.pidfd)
            process.send_signal(box.pidfd, signal.SIGKILL)
            await process.wait_exit(box.pidfd)
            os.close(box.pidfd)
            box.created.close()
        await asyncio.to_thread(cgroups.kill_all, self.cgroup)
        await asyncio.to_thread(cgroups.remove, self.cgroup)


@pytest.fixture(scope="session")
def busybox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    root = tmp_path_factory.mktemp("busybox")
    for name in ("bin", "etc", "proc", "sys", "dev", "tmp", "root"):
        (root / name).mkdir()
    shutil.copy("/bin/busybox", root / "bin" / "busybox")
    for name in ("sh", "cat", "echo", "head", "sleep", "true", "tr", "grep", "stty", "unshare", "chroot", "id", "wc"):
        (root / "bin" / name).symlink_to("busybox")
    yield root
    shutil.rmtree(root)


@contextlib.asynccontextmanager
async def open_workshop(name: str, rootfs: Path, root: Path) -> AsyncIterator[Workshop]:
    path = shutil.which(name, path="/usr/sbin:/usr/bin")
    if path is None:
        pytest.skip(f"{name} is not installed")
    if name == "crun":
        for controller in cgroups.hybrid_blocker() + cgroups.unmounted():
            cgroups.mount_v1(controller)
    workshop = Workshop(root, rootfs, OCIRuntime(name, path, (), root / "state"), f"/husk-test-{os.getpid()}")
    try:
        yield workshop
    finally:
        await workshop.clear()
    assert workshop.runtime.known() == []
    assert cgroups.processes(workshop.cgroup) == set()


@pytest.fixture(params=["crun", "runc"])
async def workshop(request: pytest.FixtureRequest, busybox: Path, tmp_path: Path) -> AsyncIterator[Workshop]:
    async with open_workshop(request.param, busybox, tmp_path) as workshop:
        yield workshop
