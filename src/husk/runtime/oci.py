"""How is an OCI runtime asked to do something, and which one is asked?

A runtime is a program (crun, runc, ...) with the OCI command line. It keeps a directory per container below its root.
Two verbs of crun are done here without starting it, because each start of a program is a millisecond or more of every
container's life: `start` is one byte into a pipe, `delete` of an ended container is some rmdirs. Both fall back to the
program whenever what they find is not exactly what they expect.
"""

import asyncio
import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from husk.config import Config, RuntimeConfig
from husk.errors import HuskError, InvalidParameter, SystemFault, Unavailable
from husk.kernel import cgroups, process
from husk.kernel.trees import discard_tree
from husk.runtime import notes
from husk.runtime.process import which

log = logging.getLogger(__name__)

# What docker calls its runc: clients send it back to us from `docker info`.
_ALIASES = {"io.containerd.runc.v2": "runc"}


# The annotation by which crun takes a filter of system calls that is compiled already.
FILTER = "run.oci.seccomp_bpf_data"
# `status` and `exec.fifo` are the same in all of these.
_LONGEST_STATUS = 1 << 16
_OLDEST_CRUN, _NEWEST_CRUN = (1, 0), (1, 29)


class _LogLine(msgspec.Struct):
    msg: str = ""
    level: str = ""


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
    """Is it a crun whose files below `root` are as we know them?"""
    takes_filters: bool = False
    """Does it take a filter of system calls that is compiled already? See `precompiled`."""

    @property
    def sends_terminal(self) -> bool:
        """Does it hand its terminal over though it waits for the process? runc refuses."""
        return self.known_files

    @property
    def program(self) -> str:
        """What to execute."""
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
        """Can `forget_ended` do its work, now or later? Blocks."""
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
        """What `crun start` does for a container without hooks: a byte into the pipe that its process waits on."""
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
            status = (
                msgspec.json.decode(_content(f"{directory}/status"), type=_CrunStatus) if self.known_files else None
            )
        except (OSError, msgspec.MsgspecError):
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


class Runtimes:
    """The runtimes that containers may name, and the one they get otherwise."""

    def __init__(
        self,
        runtimes: Mapping[str, OCIRuntime],
        default: str,
        sealed: Sequence[int] = (),
        installed: Mapping[str, OCIRuntime] | None = None,
        usual: str = "",
        retired: Mapping[str, OCIRuntime] | None = None,
    ) -> None:
        """`installed` are those that are there whatever the settings name, `usual` is the default of settings without
        one, `retired` are no longer named, but containers may run with them."""
        self.all = dict(runtimes)
        self.default = self.all[default]
        self._installed = dict(self.all if installed is None else installed)
        self._usual = usual or default
        self._retired = dict(retired or {})
        self._sealed = list(sealed)

    def close(self) -> None:
        """Let the sealed copies go; containers are not touched."""
        while self._sealed:
            os.close(self._sealed.pop())

    def reload(self, config: Config) -> None:
        """Take over new and changed runtimes, and another default. What is no longer named is there for nothing but
        the containers that run with it. InvalidParameter changes nothing."""
        found = {**self._installed, **_configured(config)}
        default = config.default_runtime or self._usual
        if default not in found:
            raise InvalidParameter(_not_installed(default))
        _settle(found.values())
        self._retired = {runtime.name: runtime for runtime in self.known() if runtime.name not in found}
        self.all, self.default = found, found[default]

    def settings(self) -> dict[str, RuntimeConfig]:
        """Those that containers may name, as settings name them."""
        return {name: RuntimeConfig(runtime.path, runtime.args) for name, runtime in self.all.items()}

    def known(self) -> list[OCIRuntime]:
        """All that containers may run with, also those that no other container gets any more."""
        return [*self._retired.values(), *self.all.values()]

    def of(self, name: str) -> OCIRuntime:
        """The runtime of a container that runs: it may be one that no other container gets any more."""
        return self._retired.get(name) or self.get(name)

    def get(self, name: str) -> OCIRuntime:
        """The runtime of that name for what is to be started; the default one for an empty name."""
        if not name:
            return self.default
        found = self.all.get(name) or self.all.get(_ALIASES.get(name, ""))
        if found is None:
            if name in _ALIASES:
                return self.default
            raise InvalidParameter(f"unknown or invalid runtime name: {name}")
        return found


async def find_runtimes(config: Config) -> Runtimes:
    """The configured runtimes, and crun and runc where they are installed. The default is the configured one, else
    crun where it can work, else runc."""
    roots = config.exec_root / "runtimes"
    installed: dict[str, OCIRuntime] = {}
    for name in ("crun", "runc"):
        if path := which(name, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"):
            installed[name] = OCIRuntime(name, path, (), roots / name)
    found = {**installed, **_configured(config)}
    blockers = await asyncio.to_thread(lambda: cgroups.hybrid_blocker() + cgroups.unmounted())
    usual = _choose(found, blockers)
    default = config.default_runtime or usual
    if not default:
        raise Unavailable("no OCI runtime found: install crun or runc, or run `husk doctor --fix`")
    if not config.default_runtime and default != "crun" and "crun" in found:
        log.warning(
            "crun cannot work while no cgroup v1 tree of %s is mounted: containers use runc, which is slower. "
            "Cure: husk doctor --fix",
            ", ".join(blockers),
        )
    if default not in found:
        raise InvalidParameter(_not_installed(default))
    await asyncio.to_thread(_settle, found.values())
    retired = await asyncio.to_thread(_left_over, roots, found)
    for name, usable in found.items():
        if Path(usable.path).name == "crun" and not usable.args:
            takes = await asyncio.to_thread(notes.names, usable.path, FILTER)
            found[name] = replace(usable, known_files=await _has_known_files(usable), takes_filters=takes)
    sealed = []
    if "crun" in found and (fd := await asyncio.to_thread(_seal, found["crun"].path)) is not None:
        found["crun"] = replace(found["crun"], sealed=f"/proc/{os.getpid()}/fd/{fd}")
        sealed.append(fd)
    installed = {name: plain if name in config.runtimes else found[name] for name, plain in installed.items()}
    return Runtimes(found, default, sealed, installed, usual, retired)


def _settle(runtimes: Iterable[OCIRuntime]) -> None:
    """Make their roots, and note there which program it is: a container may outlive the settings that name it."""
    for runtime in runtimes:
        notes.write(runtime.root, runtime.path, runtime.args)


def _left_over(roots: Path, found: Mapping[str, OCIRuntime]) -> dict[str, OCIRuntime]:
    """The runtimes that no settings name any more, though containers of theirs are there."""
    left = {}
    for root in roots.iterdir():
        if root.name in found or not root.is_dir():
            continue
        if (note := notes.read(root)) is None:
            log.debug("%s tells no program", root)
            continue
        runtime = OCIRuntime(root.name, note.path, note.args, root)
        if runtime.known():
            left[root.name] = runtime
    return left


def _configured(config: Config) -> dict[str, OCIRuntime]:
    found = {}
    for name, runtime in config.runtimes.items():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
            raise InvalidParameter(f"invalid runtime name: {name!r}")
        path = which(runtime.path) or runtime.path
        found[name] = OCIRuntime(name, path, runtime.args, config.exec_root / "runtimes" / name)
    return found


def _not_installed(name: str) -> str:
    return f"the default runtime {name} is not installed and not in the configuration"


async def _has_known_files(runtime: OCIRuntime) -> bool:
    note = await asyncio.to_thread(notes.read, runtime.root)
    told = note.version if note is not None else ""
    if not told:
        try:
            told = await runtime.version()
        except (HuskError, OSError) as error:
            log.warning("%s does not tell its version: %s", runtime.path, error)
            return False
        await asyncio.to_thread(notes.write, runtime.root, runtime.path, runtime.args, told)
    if knows_files(told):
        return True
    log.info("%s (%s) is started for every verb: how it keeps its files is not known", runtime.path, told)
    return False


def knows_files(version: str) -> bool:
    """Is this a crun, by what it tells about itself, whose private files we have read the source of?"""
    match = re.match(r"crun version (\d+)\.(\d+)", version)
    return match is not None and _OLDEST_CRUN <= (int(match[1]), int(match[2])) <= _NEWEST_CRUN


def _seal(path: str) -> int | None:
    try:
        return process.sealed_copy(path)
    except OSError as error:  # some hosts forbid programs in memory; it only saves time
        log.debug("no sealed copy of %s: %s", path, error)
        return None


def _choose(found: Mapping[str, OCIRuntime], blockers: tuple[str, ...]) -> str:
    """What containers get when nobody chose: crun where it can work, else runc; empty without both."""
    order = ("runc", "crun") if blockers else ("crun", "runc")
    return next((name for name in order if name in found), "")


def fault(runtime: str, verb: str, stderr: str, command: str = "") -> str:
    """What the client is told when a runtime fails: Docker's frame around the runtime's own message."""
    text = complaint(stderr, command) or "no message"
    frame = "failed to create task for container: failed to create shim task: " if verb == "create" else ""
    # runc names itself in front of every verb but this one.
    prefix = "exec failed" if verb == "exec" else f"{runtime} {verb} failed"
    if not text.startswith(prefix):
        text = f"{prefix}: {text}"
    return f"{frame}OCI runtime {verb} failed: {text}: unknown"


def complaint(written: str, command: str = "") -> str:
    """What a runtime has written about its failure, in runc's words; empty where it has none to tell of."""
    messages = []
    for line in written.splitlines():
        try:
            entry = msgspec.json.decode(line, type=_LogLine)
        except msgspec.MsgspecError:
            if line.strip():
                messages.append(line.strip())
            continue
        if entry.level in ("error", "fatal", ""):
            messages.append(entry.msg)
    return _in_runc_words("; ".join(message for message in messages if message), command)


CANNOT_START = 128


def exit_code(message: str) -> int:
    """The exit code that a container gets when it cannot be created: 127 not found, 126 not runnable, else 128."""
    text = message.lower()
    if any(sign in text for sign in ("executable file not found", "no such file or directory", "not a directory")):
        return 127
    if "permission denied" in text or "is a directory" in text:
        return 126
    return CANNOT_START


def _in_runc_words(text: str, command: str) -> str:
    """Clients know runc's sentences about a command that cannot be run; crun has its own."""
    if match := re.search(r"executable file `(.*)` not found", text):
        name = match[1]
        reason = f"stat {name}: no such file or directory" if "/" in name else "executable file not found in $PATH"
        return f'unable to start container process: exec: "{name}": {reason}'
    if re.search(r"^open executable: (Operation not permitted|Permission denied)", text):
        return f'unable to start container process: exec: "{command}": permission denied'
    if match := re.search(r"^chdir `(.*)`: (.*)$", text):
        reason = match[2].lower()
        return f'unable to start container process: chdir to cwd ("{match[1]}") set in config.json failed: {reason}'
    return text
