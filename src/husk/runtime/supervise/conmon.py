"""Monitors of containers: one small conmon for each keeps output, exit status and terminal while no daemon runs.

The life of a monitor: `create` starts conmon, which starts the runtime's `create` and stays behind as the parent of the
container's process. It copies the output to the log file and to whoever is connected to its `attach` socket, and when
the process has ended it writes the files `exit` and (out of memory) `oom` into the bundle, then ends itself. So the end
of the monitor means: the exit status is there, the log is complete.

The daemon is the monitor's parent (`--sync`) only to save a fork; when the daemon dies the monitor goes on and the next
daemon finds it by the pid and start time in the container's record.

What conmon 2.1.6 does that callers must know:
- It writes to attached clients blocking, and does nothing else meanwhile: whoever has a `Console` must read it, or the
  container can neither write nor end.
- With `stdin_once` the end of input from ANY client, or its disconnection, closes the container's stdin. Hence one
  `Console` per container, shared by all clients, and `close_stdin` only when the client that may do it is done.
- A client sees what is written after conmon has accepted it, which is later than `connect`: `attach` waits for that.
- A terminal's input is never closed; a resize goes through the `ctl` pipe.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import msgspec

from husk.aio.tasks import Tasks
from husk.errors import SystemFault
from husk.kernel import process
from husk.kernel.cgroup_moves import Moves as Moves
from husk.kernel.lean_mounts import Bring as Bring
from husk.kernel.lean_mounts import Copies as Copies
from husk.kernel.lean_mounts import LeanMounts as LeanMounts
from husk.runtime import oci
from husk.runtime.complaints import fault
from husk.runtime.process import Process
from husk.runtime.supervise.console import Console, until_accepted
from husk.text.documents import MalformedDocument, decode

log = logging.getLogger(__name__)

# sun_path holds 107 characters and a zero; conmon takes one less.
_SOCKET_PATH_MAX = 106
# What conmon makes in the directory of a bundle.
_OF_A_RUN = ("exit", "oom", "attach", "ctl", "winsz", "pid")
# A monitor prints no text of its own, glib's pools are larger than all that it keeps (20 of its 330 KB), and it would
# load tables of character sets (4 KB) only to find that its arguments are text already. Its buffers must not be mapped
# apart (MALLOC_MMAP_THRESHOLD_): conmon 2.1 lost output then, after a client that did not read had left.
_THRIFTY = {"LC_ALL": "C", "CHARSET": "UTF-8", "G_SLICE": "always-malloc"}


class Bundle(msgspec.Struct, frozen=True):
    """The directory of one container that its runtime and monitor work in, and how its streams are set up."""

    container_id: str
    directory: Path
    log_path: Path | None = None
    terminal: bool = False
    stdin_open: bool = False
    stdin_once: bool = False
    command: str = ""
    """The first word of the command, for error messages."""

    def write_config(self, spec: dict[str, object]) -> None:
        """Write `config.json`, what the runtime reads; nothing is left of a former run. Blocks."""
        try:
            os.makedirs(self.directory, 0o700)
        except FileExistsError:
            for name in _OF_A_RUN:
                (self.directory / name).unlink(missing_ok=True)
        (self.directory / "config.json").write_bytes(msgspec.json.encode(spec))

    @property
    def closes_stdin(self) -> bool:
        """True if the container sees the end of input when the client ends it."""
        return self.stdin_open and self.stdin_once and not self.terminal


class MonitoredProcess:
    """A process and its monitor, each held by a descriptor."""

    __slots__ = ("_bundle", "_console", "_monitor", "_watched", "monitor_pid", "monitor_started", "pid", "process")

    def __init__(self, bundle: Bundle, pid: int, monitor: process.Child, console: Console | None = None) -> None:
        """`console` is a connection that was made before the first instruction."""
        self.pid = pid
        self.monitor_pid = monitor.pid
        self.monitor_started = process.start_time(monitor.pid) or 0
        self._bundle = bundle
        self._monitor: process.Child | None = monitor
        self._console = console
        self._watched = False
        self.process = Process(pid)

    async def wait(self) -> None:
        """Return when the monitor has ended: the exit status is there, all output is written."""
        if self._monitor is None:
            raise SystemFault(f"the monitor {self.monitor_pid} was let go of")
        self._watched = True
        await process.wait_exit(self._monitor.pidfd)

    def close(self) -> None:
        """Let go of both, which run on. Safe to call twice, and while somebody waits."""
        self.process.close()
        if self._console is not None:
            self._console.close()
        monitor, self._monitor = self._monitor, None
        if monitor is not None and self._watched:
            monitor.close()
        elif monitor is not None:
            process.reap_later(monitor)

    async def attach(self, *, accepts: bool = True) -> Console:
        """Connect to the streams; what is written from now on is seen. `accepts` is False where the monitor accepts
        nobody before it has been told to start its process: then it accepts first, and copies output after."""
        made, self._console = self._console, None
        return made or await connect(self._bundle, accepts=accepts)


class Apart(msgspec.Struct, frozen=True):
    """The way to make a container apart from all that is mounted on the host."""

    copies: Copies
    """The mount points of the daemon's that it is made of, and the files that its bundle names by places of its own.
    The maker of this closes it."""
    otherwise: Callable[[], None] | None = None
    """Lets the bundle name what is on the host instead, where it cannot be made so. Blocks."""


class SyncReport(msgspec.Struct):
    """The report that conmon writes to the sync pipe: the pid, or -1 and the runtime's message."""

    data: int
    message: str = ""


DIED = "did not finish: it died"
# A runtime is looked for so often, in seconds, and missed as many times before it counts as dead: on a busy host its
# monitor may be about to tell of its end.
_LOOK, _LOOKS = 1.0, 5


async def connect(bundle: Bundle, *, accepts: bool = True) -> Console:
    """Connect to the streams that the monitor of a bundle serves; `accepts` as for `MonitoredProcess.attach`."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.setblocking(False)
    directory = os.open(bundle.directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Through the descriptor, because the path may be longer than a socket's address can be.
        address = f"/proc/self/fd/{directory}/attach"
        for _ in range(200):
            try:
                connection.connect(address)
            except BlockingIOError:  # the monitor's queue of new clients is full
                await asyncio.sleep(0.01)
            else:
                if accepts:
                    await until_accepted(connection)
                return Console(connection, bundle.closes_stdin)
        raise SystemFault(f"the monitor of container {bundle.container_id} does not answer")
    except BaseException as error:
        connection.close()
        if isinstance(error, OSError):
            gone = f"the monitor of container {bundle.container_id} is gone: {error.strerror}"
            raise SystemFault(gone) from error
        raise
    finally:
        os.close(directory)


class GaveUp(SystemFault):
    """The monitor ended although nothing is wrong: the same may work at once."""


def command(program: str, bundle: Bundle, runtime: oci.OCIRuntime) -> list[str]:
    """Compute the arguments of a monitor. Pure."""
    directory = str(bundle.directory)
    argv = [program, "--api-version", "1", "--sync"]
    argv += ["--cid", bundle.container_id, "--cuuid", bundle.container_id]
    argv += ["--runtime", runtime.program, *(f"--runtime-arg={argument}" for argument in runtime.global_args)]
    argv += ["--bundle", directory, "--persist-dir", directory, "--full-attach"]
    argv += ["--container-pidfile", f"{directory}/pid"]
    # Lines survive a killed daemon without fsync; waiting for the disk would delay every exit.
    argv += ["--log-path", f"k8s-file:{bundle.log_path}" if bundle.log_path else "none", "--no-sync-log"]
    argv += ["--log-level", "error"]
    if bundle.terminal:
        argv.append("--terminal")
    if bundle.stdin_open:
        argv.append("--stdin")
        if not bundle.closes_stdin:
            argv.append("--leave-stdin-open")
    return argv


class Monitor:
    def __init__(self, conmon_path: str, moves: Moves | None = None, lean: LeanMounts | None = None) -> None:
        """`lean` is where to start runtimes that need nothing of the host but the system's directories."""
        self._path = conmon_path
        self._moves = moves or Moves()
        self._lean = lean
        self._tasks = Tasks()

    @property
    def makes_apart(self) -> bool:
        """True while containers can be made apart from what is mounted on the host: `create` takes `apart` then."""
        return self._lean is not None

    def expect(self) -> None:
        """A process will be started soon: the earlier this is said, the sooner it runs."""
        self._moves.expect()

    def moved(self) -> None:
        """A process was moved into its cgroup just now."""
        self._moves.moved()

    async def create(
        self,
        bundle: Bundle,
        runtime: oci.OCIRuntime,
        timeout: float = 120.0,
        apart: Apart | None = None,
    ) -> MonitoredProcess:
        """Create the container of a bundle that is newly written; it waits for `runtime.start`. When this
        fails nothing runs, but the runtime may know the id.

        `apart` tells what it needs of the host's mounts, if that is known: then it is made apart from all others.
        """
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(writer, True)
        complaints = os.memfd_create("conmon", os.MFD_CLOEXEC)
        children: list[process.Child] = []

        def start() -> None:
            child = process.spawn(
                command(self._path, bundle, runtime),
                stderr=complaints,
                env={**_THRIFTY, "TZ": "UTC", "TMPDIR": socket_directory(bundle), "_OCI_SYNCPIPE": str(writer)},
                pass_fds=(writer,),
                # conmon leaves a file in its working directory when memory runs out.
                cwd=str(bundle.directory),
            )
            children.append(child)

        brought: Sequence[Bring] = ()
        try:
            if apart is not None:
                brought = await self.started_apart(start, apart)
            if not brought:
                if apart is not None and apart.otherwise is not None:
                    await asyncio.to_thread(apart.otherwise)
                start()
            os.close(writer)
            writer = -1
            report = await self._report(reader, children, runtime, timeout)
            [child] = children
            made = MonitoredProcess(bundle, report.data, child) if report is not None and report.data > 0 else None
        except BaseException:
            for child in children:
                # A runtime that is still at work would make things again that the caller removes.
                await asyncio.shield(process.end_family(child))
            raise
        else:
            if made is None:
                await process.wait_exit(child.pidfd)
                child.close()
                text = report.message if report else content(complaints)

                # Between two steps of conmon, on a busy host, the runtime handed the terminal over and ended: conmon,
                # which looks for its end first, takes it for one that had none to give. Newer ones say so.
                lost = bundle.terminal and text in ("", "Runtime did not set up terminal")
                raise (GaveUp if lost else SystemFault)(fault(runtime.name, "create", text, bundle.command))
            self._moves.moved()
            return made
        finally:
            os.close(reader)
            os.close(complaints)
            if writer >= 0:
                os.close(writer)
            if brought and self._lean is not None:
                # The container has them as its own now, or there is none.
                self._lean.forget(brought)

    async def _report(
        self, reader: int, children: Sequence[process.Child], runtime: oci.OCIRuntime, timeout: float
    ) -> "SyncReport | None":
        try:
            async with asyncio.timeout(timeout) as limit, watched(children[0].pid, limit) as lost:
                return await read_report(reader)
        except TimeoutError:
            late = f"did not finish within {timeout:g} seconds"
            raise SystemFault(f"{runtime.name} create {DIED if lost else late}") from None

    async def started_apart(self, start: Callable[[], None], apart: Apart) -> Sequence[Bring]:
        """Call `start` apart from the host's mounts; return what was brought there. Nothing if it was not started."""
        if self._lean is None:
            return ()
        try:
            await self._tasks.to_its_end(self._lean.call(start, apart.copies), "start a monitor")
        except OSError as error:
            if isinstance(error, FileNotFoundError) or apart.otherwise is not None:
                # A link of the administrator's leads elsewhere, or what is to be bound is not to be had like this.
                log.debug("this container is started among all mounts of the host: %s", error)
            else:
                log.warning("runtimes are started among all mounts of the host, which is slow beside many: %s", error)
                self._lean = None
            return ()
        return apart.copies.brought

    def exit_status(self, bundle: Bundle) -> int | None:
        """The exit status (128 + signal when killed), None while the container runs or when the monitor was killed."""
        try:
            exit_file = os.open(f"{bundle.directory}/exit", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            return int(os.read(exit_file, 64))
        except ValueError:
            return None
        finally:
            os.close(exit_file)

    def exit_time(self, bundle: Bundle) -> int | None:
        """Return when the container ended, in nanoseconds since the epoch; None if its monitor could not tell."""
        try:
            return (bundle.directory / "exit").stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def oom(self, bundle: Bundle) -> bool:
        """Return True if the monitor has noted that the container ran out of memory."""
        return os.path.exists(f"{bundle.directory}/oom")

    def adopt(self, bundle: Bundle, pid: int, monitor_pid: int, monitor_started: int) -> MonitoredProcess | None:
        """Take over a process that a former daemon has started; None if its monitor is gone. The time at which that
        started guards against a reused process id."""
        try:
            monitor = process.Child(monitor_pid, process.pidfd_open(monitor_pid))
        except ProcessLookupError:
            return None
        if process.start_time(monitor_pid) == monitor_started:
            try:
                return MonitoredProcess(bundle, pid, monitor)
            except BaseException:
                monitor.close()
                raise
        monitor.close()
        return None

    async def resize(self, bundle: Bundle, height: int, width: int) -> None:
        """Set the size of the container's terminal."""
        # Larger ones conmon refuses, without telling.
        height, width = (min(max(int(value), 0), 1000) for value in (height, width))
        try:
            _tell(bundle, f"1 {height} {width}\n")
        except OSError as error:
            raise SystemFault(f"cannot resize container {bundle.container_id}: {error.strerror}") from error

    def reopen_log(self, bundle: Bundle) -> None:
        """Let the log begin anew at its path; conmon does so a moment later, by renaming a new file to it.

        Raises SystemFault when the monitor is gone."""
        try:
            _tell(bundle, "2 0 0\n")
        except BlockingIOError:
            pass  # it has read nothing for long: it is stuck, not gone
        except OSError as error:
            raise SystemFault(f"the monitor of container {bundle.container_id} is gone: {error.strerror}") from error


@contextlib.asynccontextmanager
async def watched(monitor: int, limit: asyncio.Timeout) -> AsyncIterator[list[bool]]:
    """Meanwhile it is looked now and then whether the runtime that a monitor has started has died without a word. Then
    the limit is reached at once, and the list has something in it.

    conmon waits for the end of the runtime's messages first, and a process that the runtime has made holds them open:
    that one is all that is left."""
    loop = asyncio.get_running_loop()
    lost: list[bool] = []
    gone = 0
    timer: asyncio.TimerHandle

    def look() -> None:
        nonlocal gone, timer
        gone = gone + 1 if process.left_inside(monitor) else 0
        if gone == _LOOKS:
            lost.append(True)
            limit.reschedule(loop.time())
        else:
            timer = loop.call_later(_LOOK, look)

    timer = loop.call_later(_LOOK, look)
    try:
        yield lost
    finally:
        timer.cancel()


def _tell(bundle: Bundle, line: str) -> None:
    fd = os.open(bundle.directory / "ctl", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.write(fd, line.encode())
    finally:
        os.close(fd)


async def read_report(fd: int) -> SyncReport | None:
    """The first line from a pipe of conmon's; None when conmon ended without one."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(fd, readable.set)
    line = b""
    try:
        while b"\n" not in line:
            await readable.wait()
            readable.clear()
            with contextlib.suppress(BlockingIOError):
                chunk = os.read(fd, 65536)
                if not chunk:
                    return None
                line += chunk
    finally:
        loop.remove_reader(fd)
    try:
        # The exit status of an exec may follow at once.
        return decode(line.partition(b"\n")[0], SyncReport)
    except MalformedDocument:
        return SyncReport(-1, line.decode(errors="replace"))


def socket_directory(bundle: Bundle) -> str:
    """Choose where conmon binds the socket that gets the terminal: /tmp if the path in the bundle would be too long."""
    directory = str(bundle.directory)
    return directory if len(directory) + len("/conmon-term.XXXXXX") <= _SOCKET_PATH_MAX else "/tmp"


def content(fd: int) -> str:
    return os.pread(fd, 8192, 0).decode(errors="replace")
