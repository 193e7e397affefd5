"""The start of another process in a running container, with a monitor of its own for its terminal and its output.

An exec's bundle is a directory of its own: `process.json` (what to run), and what conmon makes there: `attach`, `ctl`
while it runs, `exit` when it has ended. As with containers, the end of the monitor means that the exit status is there
and the output is complete, and neither monitor nor process ends with the daemon.

The talk with conmon: it waits for a first message on the start pipe, opens its socket, says so on the attach pipe, and
starts the process after a second message, so that no output is lost before we are connected. It waits for that message
in its loop, which accepts us, only if it also waits for a terminal there. The sync pipe then brings the process's pid,
or why there is none.

With a terminal, the second message must not come before conmon sleeps in its loop. Right before, it looks once whether
the runtime has ended already: one that hands the terminal over and ends between two steps of conmon, on a busy host,
makes it give up without a word, although the process runs. So these wait for the message also where nobody attaches.

crun 1.8 sets the size of an exec's terminal while the program already starts: it is held before its first instruction
until it has one (`kernel.exec_hold`).

Spawning the runtime without a monitor measured 4.2 ms against 6.9 ms here (`true`, crun): 2.7 ms for a process that
outlives the daemon, with one way to treat its terminal and streams. `bench.exec` shows the whole.
"""

import asyncio
import os
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import msgspec

from husk.errors import SystemFault
from husk.kernel import process
from husk.kernel.exec_hold import held_until_sized
from husk.kernel.trees import discard_tree
from husk.runtime import oci
from husk.runtime.complaints import fault
from husk.runtime.supervise.conmon import (
    DIED,
    Bundle,
    Monitor,
    MonitoredProcess,
    command,
    connect,
    content,
    read_report,
    socket_directory,
    watched,
)
from husk.runtime.supervise.console import Console

START_TIMEOUT = 60.0
# How long a monitor may take until it is in its loop; one that is stuck fails later.
_LOOP_SECONDS = 5.0
_RECORD, _LOG = "exec.json", "runtime.log"
_LONGEST_LOG = 1 << 16


class ExecMonitor(Monitor):
    """Starts monitors of execs; everything else is as with containers."""

    def prepare(self, bundle: Bundle, of_container: Path) -> bytes:
        """Make the bundle's directory; the configuration that the container of that other bundle was made with."""
        bundle.directory.mkdir(mode=0o700, parents=True)
        return (of_container / "config.json").read_bytes()

    def save(self, bundle: Bundle, record: bytes) -> None:
        """Note what the next daemon has to know."""
        (bundle.directory / _RECORD).write_bytes(record)

    def saved(self, directory: Path) -> list[tuple[Path, bytes | None]]:
        """The directories of all execs, with what was noted of each; None where nothing can be read."""
        try:
            return [(directory / name, _content(directory / name / _RECORD)) for name in os.listdir(directory)]
        except FileNotFoundError:
            return []

    def discard(self, bundle: Bundle) -> None:
        """Delete the bundle; nothing happens when it is gone."""
        discard_tree(bundle.directory)

    async def start(
        self, bundle: Bundle, runtime: oci.OCIRuntime, spec: dict[str, object], attached: bool
    ) -> MonitoredProcess:
        """Run the process in the container of the bundle; with `attached` its streams are connected before the first
        instruction. When this fails nothing runs."""
        (bundle.directory / "process.json").write_bytes(msgspec.json.encode(spec))
        with ExitStack() as ours:
            held = attached or bundle.terminal
            talk = _Talk(ours, held)
            complaints = os.memfd_create("conmon", os.MFD_CLOEXEC)
            ours.callback(os.close, complaints)
            child: process.Child | None = None
            console: Console | None = None
            lost: list[bool] = []
            try:
                child = process.spawn(
                    exec_command(self._path, bundle, runtime, held),
                    stderr=complaints,
                    env={"TZ": "UTC", "TMPDIR": socket_directory(bundle), **talk.environment},
                    pass_fds=tuple(talk.theirs.values()),
                    cwd=str(bundle.directory),
                )
                talk.spawned()
                async with AsyncExitStack() as until_told:
                    limit = await until_told.enter_async_context(asyncio.timeout(START_TIMEOUT))
                    lost = await until_told.enter_async_context(watched(child.pid, limit))
                    if held and await read_report(talk.attach) is not None:
                        if attached:
                            console = await connect(bundle, accepts=bundle.terminal)
                        if bundle.terminal:
                            await process.until_asleep(child.pid, _LOOP_SECONDS)
                        if "consoleSize" in spec and runtime.sizes_late:
                            await until_told.enter_async_context(held_until_sized(child.pid))
                        talk.go()
                    report = await read_report(talk.sync)
                if report is not None and report.data > 0:
                    return MonitoredProcess(bundle, report.data, child, console)
            except BaseException as error:
                if console is not None:
                    console.close()
                if child is not None:
                    # With what a runtime that died has left it.
                    await asyncio.shield(process.end_family(child))
                if isinstance(error, TimeoutError):
                    late = f"did not finish within {START_TIMEOUT:g} seconds"
                    raise SystemFault(f"{runtime.name} exec {DIED if lost else late}") from None
                raise
            if console is not None:
                console.close()
            await process.wait_exit(child.pidfd)
            child.close()
            text = report.message if report else content(complaints)
            if bundle.terminal and not text:
                text = await asyncio.to_thread(_written, bundle)

            raise SystemFault(fault(runtime.name, "exec", text, bundle.command))


def exec_command(program: str, bundle: Bundle, runtime: oci.OCIRuntime, held: bool) -> list[str]:
    """Compute the arguments of a monitor of an exec; one that is `held` waits before it starts the process. Pure."""
    argv = command(program, bundle, runtime)
    if bundle.terminal:
        # What the runtime's child says, which has the terminal already, the monitor hears nothing of.
        argv += ["--runtime-arg=--log", f"--runtime-arg={bundle.directory}/{_LOG}"]
    argv = [*argv, "--exec", "--exec-process-spec", f"{bundle.directory}/process.json"]
    return [*argv, "--exec-attach"] if held else argv


class _Talk:
    """The pipes between us and one monitor; ours are closed with the stack, theirs as soon as it has them."""

    def __init__(self, stack: ExitStack, held: bool) -> None:
        """`held` is whether the monitor waits before it starts the process."""
        self.theirs: dict[str, int] = {}
        self._stack = stack
        self._closing_theirs = stack.enter_context(ExitStack())
        self.sync = self._reader("_OCI_SYNCPIPE")
        if held:
            self.attach = self._reader("_OCI_ATTACHPIPE")
            self._start = self._writer("_OCI_STARTPIPE")
            self.go()

    @property
    def environment(self) -> dict[str, str]:
        return {name: str(fd) for name, fd in self.theirs.items()}

    def spawned(self) -> None:
        self._closing_theirs.close()

    def go(self) -> None:
        os.write(self._start, b"\0")

    def _reader(self, name: str) -> int:
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(ours, False)
        return self._keep(name, ours, theirs)

    def _writer(self, name: str) -> int:
        theirs, ours = os.pipe2(os.O_CLOEXEC)
        return self._keep(name, ours, theirs)

    def _keep(self, name: str, ours: int, theirs: int) -> int:
        self.theirs[name] = theirs
        self._stack.callback(os.close, ours)
        self._closing_theirs.callback(os.close, theirs)
        return ours


def _written(bundle: Bundle) -> str:
    """Read what the runtime has written into its own log; empty where it has none."""
    try:
        with (bundle.directory / _LOG).open(errors="replace") as file:
            return file.read(_LONGEST_LOG)
    except OSError:
        return ""


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
