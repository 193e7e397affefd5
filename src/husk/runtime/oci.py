"""The driver of an OCI runtime, which is asked by its command line. Which one is asked is told by `runtimes`.

A runtime is a program (crun, runc, ...) with the OCI command line. It keeps a directory per container below its root.
Two verbs of crun are done here without starting it, because each start of a program is a millisecond or more of every
container's life: `start` is one byte into a pipe, `delete` of an ended container is some rmdirs. Both fall back to the
program whenever what they find is not exactly what they expect.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from husk.errors import SystemFault
from husk.kernel import cgroups, process
from husk.kernel.trees import discard_tree
from husk.runtime.complaints import fault
from husk.text.documents import MalformedDocument, decode

# The annotation by which crun takes a filter of system calls that is compiled already.
FILTER = "run.oci.seccomp_bpf_data"
_LONGEST_STATUS = 1 << 16


class _CrunStatus(msgspec.Struct, rename="kebab"):
    """The part of crun's own status file that we read."""

    pid: int
    process_start_time: int = 0
    cgroup_path: str = ""
    systemd_cgroup: bool = False


class OCIRuntime(msgspec.Struct, frozen=True):
    """One runtime with one root directory. All methods raise SystemFault with the runtime's own message."""

    name: str
    path: str
    args: tuple[str, ...]
    root: Path
    sealed: str = ""
    """Path of the program's sealed copy, if there is one."""
    known_files: bool = False
    """True for a crun whose files below `root` are as we know them."""
    takes_filters: bool = False
    """True if it takes a filter of system calls that is compiled already: see `seccomp.precompiled`."""

    @property
    def sends_terminal(self) -> bool:
        """True if the runtime hands its terminal over though it waits for the process. runc refuses."""
        return self.known_files

    @property
    def sizes_late(self) -> bool:
        """True if the program of an exec may run before its terminal has the size that it is to have: crun's child does
        not wait for crun, which sets it."""
        return self.known_files

    @property
    def reads_pipes(self) -> bool:
        """True if it takes its configuration from a pipe by the name of the file. It reads that once, to its end."""
        return self.known_files

    @property
    def program(self) -> str:
        """The path of the program to execute: the sealed copy, if there is one."""
        return self.sealed or self.path

    @property
    def global_args(self) -> list[str]:
        """Arguments before the verb."""
        return [*self.args, "--root", str(self.root), "--log-format", "json"]

    async def start(self, container_id: str) -> None:
        """Let a created container's process run."""
        if self.known_files and self._open_gate(container_id):
            return
        await self._run("start", container_id)

    async def delete(self, container_id: str, force: bool = False) -> None:
        """Forget a container and remove its cgroup. `force` kills it first; what does not exist is no error."""
        if await asyncio.to_thread(self.forget_ended, container_id):
            return
        try:
            await self._run("delete", *(["--force"] if force else []), container_id)
        except SystemFault:
            if (self.root / container_id).exists():
                raise

    def forget_ended(self, container_id: str, spared: str = "") -> bool:
        """Forget a container that has ended, without the program's help; False if that takes `delete`. Blocks.

        `spared` is the cgroup that the caller removes himself."""
        directory = f"{self.root}/{container_id}"
        cgroup_path = self._ended(directory)
        if cgroup_path is None:
            return False
        if cgroup_path and cgroup_path != spared:
            try:
                cgroups.remove(cgroup_path)
            except SystemFault:
                # Without a pid namespace of its own, a container's children outlive its first process.
                cgroups.kill_all(cgroup_path)
                cgroups.remove(cgroup_path)
        return discard_tree(directory)

    def has_ended(self, container_id: str) -> bool:
        """Return True if `forget_ended` can do its work, now or later. Blocks."""
        return self._ended(f"{self.root}/{container_id}") is not None

    async def kill(self, container_id: str, sig: int) -> None:
        await self._run("kill", container_id, str(int(sig)))

    async def pause(self, container_id: str) -> None:
        await self._run("pause", container_id)

    async def resume(self, container_id: str) -> None:
        await self._run("resume", container_id)

    async def update(self, container_id: str, resources: Mapping[str, object]) -> None:
        """Change the limits of a running container to `resources`, in the words of an OCI spec."""
        await self._run("update", "--resources", "/dev/stdin", container_id, stdin=msgspec.json.encode(resources))

    def known(self) -> list[str]:
        """Ids of the containers that this runtime still has a directory of."""
        try:
            return sorted(entry.name for entry in os.scandir(self.root) if entry.is_dir() and entry.name[0] != ".")
        except FileNotFoundError:
            return []

    async def version(self) -> str:
        """The first line that the runtime prints about itself."""
        result = await process.run([self.path, "--version"], timeout=10)
        return result.stdout.decode(errors="replace").partition("\n")[0]

    async def _run(self, verb: str, *arguments: str, stdin: bytes | None = None) -> None:
        result = await process.run([self.program, *self.global_args, verb, *arguments], stdin=stdin)
        if result.returncode != 0:
            raise SystemFault(fault(self.name, verb, result.stderr.decode(errors="replace")))

    def _open_gate(self, container_id: str) -> bool:
        """Write a byte into the pipe that the process waits on, as `crun start` without hooks. False if that fails."""
        gate = self.root / container_id / "exec.fifo"
        try:
            # Fails when nobody reads, that is when the process is gone: the program then tells why.
            fd = os.open(gate, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            # The missing pipe is how crun knows a running container from a created one.
            gate.unlink()
            os.write(fd, b"\0")
        except OSError:
            return False
        finally:
            os.close(fd)
        return True

    def _ended(self, directory: str) -> str | None:
        """The cgroup of a container that has ended and has no hooks, "" when it is known no more; None where it takes
        the program to tell, or to end it."""
        try:
            status = decode(_content(f"{directory}/status"), _CrunStatus) if self.known_files else None
        except (OSError, MalformedDocument):
            status = None
        if status is None:
            return None if os.path.exists(directory) else ""
        if status.systemd_cgroup or process.start_time(status.pid) == status.process_start_time:
            return None
        return status.cgroup_path


def _content(path: str) -> bytes:
    """Of a small file, with three system calls: after each of them a thread waits for its turn to run Python."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, _LONGEST_STATUS)
    finally:
        os.close(file)
