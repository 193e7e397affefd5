"""Starts, watches and signals processes by descriptor: a pid is a number that somebody else may get next.

This is the one place of the daemon that starts programs. `subprocess.Popen` without `preexec_fn` uses vfork, whose cost
does not grow with the daemon's memory; the exit is seen through a pidfd, so that no child watcher, signal handler or
thread per process is needed and the same code watches processes that a former daemon started.
"""

import asyncio
import fcntl
import os
import select
import signal
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from husk.errors import SystemFault

_CLEAN_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}

_PATIENCE_MS = 1000
_FAMILY_PATIENCE = 10.0
# Children that nobody waits for; done when an event loop has seen their end.
_owed: "dict[Child, asyncio.Future[None]]" = {}


class Completed(Struct, frozen=True):
    """The status and the output of a finished program: negative `returncode` is the signal that killed it."""

    returncode: int
    stdout: bytes
    stderr: bytes


class Child(msgspec.Struct, frozen=True):
    """A process started by this daemon. The owner reaps it with `wait` or `wait_exit` and closes the pidfd."""

    pid: int
    pidfd: int

    def close(self) -> None:
        os.close(self.pidfd)


def pidfd_open(pid: int) -> int:
    """A descriptor of the process; ProcessLookupError when there is none."""
    return os.pidfd_open(pid)


def send_signal(pidfd: int, sig: int) -> bool:
    """Signal the process; False when it has already ended."""
    try:
        signal.pidfd_send_signal(pidfd, sig)
    except ProcessLookupError:
        return False
    return True


def has_ended(pidfd: int) -> bool:
    """Tell if the process is gone, or only a zombie."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def start_time(pid: int) -> int | None:
    """Return the time when the process started, in clock ticks since boot; None when it is gone or only a zombie.

    The pair of pid and start time names one process for ever, where a pid alone is used again.
    """
    fields = _status_fields(pid)
    if not fields or fields[0] in (b"Z", b"X"):
        return None
    return int(fields[19])


async def until_asleep(pid: int, patience: float) -> None:
    """Wait until the process waits for something itself, or is gone; one that goes on working is waited for no longer
    than `patience` seconds."""
    started = time.monotonic()
    while _status_fields(pid)[:1] not in ([b"S"], [b"Z"], [b"X"], []):
        waited = time.monotonic() - started
        if waited > patience:
            return
        # Mostly a small part of a millisecond is enough, which is what timers tick in.
        await asyncio.sleep(0 if waited < 0.001 else 0.001)


def _status_fields(pid: int) -> list[bytes]:
    """Read the fields of a process's `stat`, from its state on; nothing when the process is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return []
    # The program's name may hold spaces and parentheses: count the fields behind the last one.
    return stat[stat.rfind(b")") + 2 :].split()


def given(arguments: Collection[str]) -> list[int]:
    """The processes, but for this one, that were started with one of these arguments. Blocks."""
    wanted = {os.fsencode(argument) for argument in arguments}
    return [pid for pid in _pids() if pid != os.getpid() and not wanted.isdisjoint(arguments_of(pid))]


def kill_given(arguments: Collection[str], patience: float = 5.0) -> None:
    """Kill the processes that were started with one of these arguments, and wait for their end. Blocks.

    For what a former daemon started and had no time to note.
    """
    deadline = time.monotonic() + patience
    while found := given(arguments):
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise SystemFault(f"processes {found} do not end after SIGKILL")
        time.sleep(0.005)


def stop_ignoring_signals() -> None:
    """Stop ignoring signals: our children inherit it, and `nohup` or a shell's `&` may have made us ignore some.

    SIGPIPE and SIGXFSZ are Python's own doing, and undone for every child by `subprocess`.
    The two that glibc keeps for itself (32, 33; ignored below `make` and whatever else uses posix_spawn) no program of
    it can change, and every one of it sets them itself before it uses them.
    """
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isascii() and name.isdigit()]


def arguments_of(pid: int) -> list[bytes]:
    """Return the command line that a process was started with; nothing for one that is gone or only a zombie."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().removesuffix(b"\0").split(b"\0")
    except OSError:
        return []


async def wait_exit(pidfd: int) -> None:
    """Return when the process has ended; reaps it when it is a child of this daemon. Any number may wait at once."""
    loop = asyncio.get_running_loop()
    # Not an event: each has room for 64 who wait (0.6 KB), and every container has somebody here.
    ended: asyncio.Future[None] = loop.create_future()
    # The loop keeps one callback per descriptor number, hence a number of our own.
    watched = os.dup(pidfd)
    loop.add_reader(watched, _note, ended)
    try:
        await ended
        reap(watched)  # the other may have been let go of meanwhile
    finally:
        loop.remove_reader(watched)
        os.close(watched)


def _note(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


async def wait(child: Child) -> int:
    """The exit status of a child when it has ended (negative: the signal); it is reaped and let go of.

    Whoever is cancelled meanwhile still has it.
    """
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(child.pidfd, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(child.pidfd)
    returncode = reap(child.pidfd)
    child.close()
    return returncode if returncode is not None else 0


def reap(pidfd: int) -> int | None:
    """The exit status of our own child (negative: the signal), None when it is not ours or was reaped before."""
    try:
        result = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
    except ChildProcessError:
        return None
    if result is None:
        return None
    return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status


def spawn(
    argv: Sequence[str],
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    stderr: int = subprocess.DEVNULL,
    env: Mapping[str, str] | None = None,
    pass_fds: Collection[int] = (),
    cwd: str | None = None,
) -> Child:
    """Start a program in a session of its own: Ctrl-C on the daemon's terminal must not reach it."""
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env={**_CLEAN_ENVIRONMENT, **(env or {})},
            pass_fds=tuple(pass_fds),
            cwd=cwd,
            start_new_session=True,
        )
    except OSError as error:
        raise SystemFault(f"cannot run {argv[0]}: {error.strerror or error}") from error
    # We reap through the pidfd; without this, Popen's own bookkeeping would compete for the exit status.
    process.returncode = 0
    return Child(process.pid, os.pidfd_open(process.pid))


async def run(
    argv: Sequence[str],
    *,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 60.0,
    pass_fds: Collection[int] = (),
    cwd: str | None = None,
) -> Completed:
    """Run a program to its end. It is killed when `timeout` seconds have passed or the caller is cancelled.

    Input and output go through memory files: nothing to pump, no deadlock, and a grandchild that keeps the output open
    does not keep us waiting.
    """
    files = [os.memfd_create(name, os.MFD_CLOEXEC) for name in ("stdin", "stdout", "stderr")]
    try:
        if stdin is not None:
            remaining = memoryview(stdin)
            while remaining:
                remaining = remaining[os.write(files[0], remaining) :]
            os.lseek(files[0], 0, os.SEEK_SET)
        child = spawn(argv, stdin=files[0], stdout=files[1], stderr=files[2], env=env, pass_fds=pass_fds, cwd=cwd)
        returncode = await _finish(child, argv[0], timeout)
        return Completed(returncode, _content(files[1]), _content(files[2]))
    finally:
        for fd in files:
            os.close(fd)


async def _finish(child: Child, name: str, timeout: float) -> int:
    try:
        async with asyncio.timeout(timeout):
            return await wait(child)
    except BaseException as error:
        send_signal(child.pidfd, signal.SIGKILL)
        reap_later(child)
        if isinstance(error, TimeoutError):
            raise SystemFault(f"{name} did not finish within {timeout:g} seconds and was killed") from None
        raise


def left_inside(pid: int) -> bool:
    """Tell if the process has children, and all of them see other mounts than it, as those inside a container do."""
    try:
        mounts = os.readlink(f"/proc/{pid}/ns/mnt")
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return False
    seen = []
    for child in children:
        with suppress(OSError):
            seen.append(os.readlink(f"/proc/{child}/ns/mnt"))
    return bool(seen) and mounts not in seen


def _children(pid: int) -> list[int]:
    """Descriptors of a process's children, for the caller to close."""
    found = []
    with suppress(OSError):
        for number in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with suppress(ProcessLookupError):
                found.append(pidfd_open(int(number)))
    return found


async def _pause(child: Child) -> None:
    """Let a child of ours run no further; one that waits for a disk is waited for, but not for ever."""
    send_signal(child.pidfd, signal.SIGSTOP)
    for _ in range(_PATIENCE_MS):
        if _status_fields(child.pid)[:1] in ([b"T"], [b"Z"], []):
            return
        await asyncio.sleep(0.001)


async def end_family(child: Child) -> None:
    """Kill a child of ours and its children, and return when all have ended; their children are not meant.

    One that waits for a file system that does not answer takes no signal: it is left alone after a while."""
    await _pause(child)  # or it might start another one behind our back
    children = _children(child.pid)
    try:
        for pidfd in (child.pidfd, *children):
            send_signal(pidfd, signal.SIGKILL)
        with suppress(TimeoutError):
            async with asyncio.timeout(_FAMILY_PATIENCE):
                for pidfd in (child.pidfd, *children):
                    await wait_exit(pidfd)
    finally:
        for pidfd in children:
            os.close(pidfd)
        if has_ended(child.pidfd):
            child.close()
        else:
            reap_later(child)


def reap_later(child: Child) -> None:
    """Give up ownership: reap the child and close its descriptor whenever it ends."""
    loop = asyncio.get_running_loop()
    ended = _owed[child] = loop.create_future()

    def note() -> None:
        loop.remove_reader(child.pidfd)
        del _owed[child]
        reap(child.pidfd)
        child.close()
        ended.set_result(None)

    loop.add_reader(child.pidfd, note)


async def reap_all(patience: float = 5.0) -> None:
    """Wait for the ends that this event loop still has to see, before it ends itself: a program that lives on would be
    left with zombies. Children that take longer than `patience` are let go of."""
    loop = asyncio.get_running_loop()
    if mine := [ended for ended in _owed.values() if ended.get_loop() is loop]:
        await asyncio.wait(mine, timeout=patience)
    for child in [child for child, ended in _owed.items() if ended.get_loop() is loop]:
        loop.remove_reader(child.pidfd)
        del _owed[child]
        child.close()


def sealed_copy(path: str) -> int:
    """A descriptor of a program's copy in memory that nobody can change; it runs as /proc/<our pid>/fd/<number>.

    Runtimes copy themselves like this at every start, so that a container cannot overwrite the host's program through
    /proc/self/exe. One that finds itself in such a file saves the copy and the second start.
    """
    fd = os.memfd_create(Path(path).name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(path, "rb") as program:
            size = os.fstat(program.fileno()).st_size
            while size > 0:
                size -= os.sendfile(fd, program.fileno(), None, size)
        os.fchmod(fd, 0o555)
        seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _content(fd: int) -> bytes:
    size = os.fstat(fd).st_size
    return os.pread(fd, size, 0) if size else b""
