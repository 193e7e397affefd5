import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from husk.errors import SystemFault
from husk.kernel import process
from tests.support.waiting import until


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


NoChildren = Callable[[], Awaitable[None]]


@pytest.fixture
def no_children() -> NoChildren:
    """Wait until everything that this test started is reaped; what others started is not its business."""
    others = children()

    async def wait() -> None:
        deadline = time.monotonic() + 10
        while children() - others:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.005)

    return wait


async def test_a_program_gives_its_output_and_status() -> None:
    result = await process.run(["/bin/sh", "-c", "cat; echo oops >&2; exit 3"], stdin=b"hello")
    assert result == process.Completed(3, b"hello", b"oops\n")


async def test_without_input_a_program_reads_nothing() -> None:
    assert (await process.run(["/bin/cat"])).stdout == b""


async def test_large_input_and_output_do_not_block_each_other() -> None:
    data = os.urandom(3_000_000)
    assert (await process.run(["/bin/cat"], stdin=data)).stdout == data


async def test_a_killed_program_has_the_negative_signal() -> None:
    assert (await process.run(["/bin/sh", "-c", "kill -9 $$"])).returncode == -9


async def test_only_the_given_environment_and_a_plain_one_reach_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    text = (await process.run(["/usr/bin/env"], env={"A": "b"})).stdout.decode()
    assert "SECRET" not in text
    assert "A=b\n" in text
    assert "PATH=" in text


async def test_only_the_passed_descriptors_reach_the_program() -> None:
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    try:
        listing = await process.run(["/bin/ls", "/proc/self/fd"], pass_fds=(writer,))
        numbers = {int(number) for number in listing.stdout.split()}
    finally:
        os.close(reader)
        os.close(writer)
    assert writer in numbers
    assert reader not in numbers


async def test_ignored_signals_are_not_inherited() -> None:
    mine = {number: signal.getsignal(number) for number in signal.valid_signals()}
    try:
        signal.signal(signal.SIGQUIT, signal.SIG_IGN)
        process.stop_ignoring_signals()
        status = (await process.run(["/bin/cat", "/proc/self/status"])).stdout.decode()
    finally:
        for number, handler in mine.items():
            if handler is signal.SIG_IGN:
                signal.signal(number, handler)
        signal.signal(signal.SIGQUIT, mine[signal.SIGQUIT])
    mask = int(next(line for line in status.splitlines() if line.startswith("SigIgn:")).split()[1], 16)
    ignored = {number for number in range(1, 65) if mask >> (number - 1) & 1}
    assert ignored <= {32, 33}, "glibc's own two, which it ignores in what posix_spawn starts: `make` is such a parent"


async def test_a_program_that_takes_too_long_is_killed(no_children: NoChildren) -> None:
    with pytest.raises(SystemFault, match=r"/bin/sleep did not finish within 0.05 seconds and was killed"):
        await process.run(["/bin/sleep", "100"], timeout=0.05)
    await no_children()


async def test_a_cancelled_caller_leaves_no_program_behind(no_children: NoChildren) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await process.run(["/bin/sleep", "100"])
    await no_children()


async def test_a_missing_program_is_named() -> None:
    with pytest.raises(SystemFault, match=r"^cannot run /nonexistent: No such file or directory$"):
        await process.run(["/nonexistent"])


async def test_a_grandchild_that_keeps_the_output_open_does_not_keep_us_waiting() -> None:
    async with asyncio.timeout(30):
        result = await process.run(["/bin/sh", "-c", "sleep 600 & echo $!"])
    os.kill(int(result.stdout), signal.SIGKILL)


async def test_everybody_who_waits_for_an_exit_is_told() -> None:
    child = process.spawn(["/bin/cat"], stdin=(reading := os.pipe())[0])
    waiting = [asyncio.ensure_future(process.wait_exit(child.pidfd)) for _ in range(3)]  # noqa: TID251 - in a test
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    for end in reading:
        os.close(end)
    await asyncio.gather(*waiting)
    assert not process.send_signal(child.pidfd, signal.SIGKILL)
    child.close()


async def test_a_signal_reaches_the_process_and_its_end_is_seen() -> None:
    child = process.spawn(["/bin/sleep", "100"])
    assert process.start_time(child.pid) is not None
    assert process.send_signal(child.pidfd, signal.SIGTERM)
    await process.wait_exit(child.pidfd)
    assert process.start_time(child.pid) is None
    child.close()


def test_the_start_time_tells_processes_apart(tmp_path: Path) -> None:
    assert process.start_time(os.getpid()) == process.start_time(os.getpid())
    assert process.start_time(2**22 + 1) is None


def test_a_sealed_copy_cannot_be_changed() -> None:
    fd = process.sealed_copy("/bin/true")
    try:
        assert os.pread(fd, 4, 0) == b"\x7fELF"
        with pytest.raises(PermissionError):
            os.pwrite(fd, b"x", 0)
    finally:
        os.close(fd)


async def test_a_process_that_has_ended_is_told_from_one_that_runs():
    child = process.spawn(["sleep", "1000"])
    try:
        assert not process.has_ended(child.pidfd)
        process.send_signal(child.pidfd, signal.SIGKILL)
        await process.wait_exit(child.pidfd)
        assert process.has_ended(child.pidfd)
    finally:
        child.close()


def test_what_was_started_with_an_argument_is_killed(tmp_path: Path) -> None:
    def start(name: str) -> subprocess.Popen[bytes]:
        """A process without children, which would stay behind."""
        return subprocess.Popen(["sh", "-c", "read line", "x", str(tmp_path / name)], stdin=subprocess.PIPE)

    strays, other = [start("a"), start("b")], start("ab")
    try:
        # The kernel lets go of who starts a program a moment before its arguments can be seen.
        until(
            lambda: process.given([str(tmp_path / "a"), str(tmp_path / "b")]) == [stray.pid for stray in strays], "both"
        )
        until(lambda: process.given([str(tmp_path / "ab")]) == [other.pid], "the other")
        assert process.arguments_of(other.pid) == [b"sh", b"-c", b"read line", b"x", os.fsencode(tmp_path / "ab")]
        process.kill_given([str(tmp_path / "a"), str(tmp_path / "b")])
        assert [stray.wait(5) for stray in strays] == [-9, -9]
        assert other.poll() is None, "the whole argument counts"
    finally:
        for child in (other, *strays):
            child.kill()
            child.communicate()


async def test_the_end_of_a_family_that_grows_meanwhile(tmp_path: Path) -> None:
    name = f"{tmp_path}/fifo"  # nobody ever writes to it: who opens it waits for ever
    os.mkfifo(name)
    more = f"while :; do cat {name} & done"
    try:
        for moment in range(10):
            child = process.spawn(["bash", "-c", more])
            await asyncio.sleep(0.002 * moment)
            await process.end_family(child)
            assert not started_with(name)
    finally:
        process.kill_given([name, more])


def started_with(argument: str) -> list[str]:
    """Forks of the shell that have not become `cat` yet have its arguments."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if argument in command:
            found.append(command)
    return found


async def test_a_loop_that_ends_leaves_no_zombie_behind():
    quick, slow = process.spawn(["sleep", "0.01"]), process.spawn(["sleep", "100"])
    process.reap_later(quick)
    await process.reap_all()
    assert process.start_time(quick.pid) is None
    with pytest.raises(ChildProcessError):
        os.waitpid(quick.pid, os.WNOHANG)
    process.reap_later(slow)
    await process.reap_all(patience=0.01)
    os.kill(slow.pid, signal.SIGKILL)
    os.waitpid(slow.pid, 0)
    await process.reap_all()
