import asyncio
import os
import resource
import signal
from pathlib import Path

import pytest
from msgspec.structs import replace

from husk.errors import SystemFault
from husk.kernel import process
from husk.runtime.oci import OCIRuntime
from husk.runtime.supervise.conmon import Bundle, GaveUp, Monitor, MonitoredProcess, command, connect
from tests.support.waiting import until_async

RUNTIME = OCIRuntime("crun", "/usr/bin/crun", ("--extra",), Path("/run/x"))


PROGRAM = "/usr/bin/conmon"


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return Bundle("abc", tmp_path, tmp_path / "log")


@pytest.fixture
def monitor() -> Monitor:
    return Monitor(PROGRAM)


def test_the_log_is_written_where_the_bundle_says_or_nowhere(bundle: Bundle) -> None:
    argv = command(PROGRAM, bundle, RUNTIME)
    assert argv[argv.index("--log-path") + 1] == f"k8s-file:{bundle.log_path}"
    argv = command(PROGRAM, replace(bundle, log_path=None), RUNTIME)
    assert argv[argv.index("--log-path") + 1] == "none"


def test_the_runtime_gets_its_own_arguments(bundle: Bundle) -> None:
    argv = command(PROGRAM, bundle, RUNTIME)
    assert [item for item in argv if item.startswith("--runtime-arg=")] == [
        "--runtime-arg=--extra",
        "--runtime-arg=--root",
        "--runtime-arg=/run/x",
        "--runtime-arg=--log-format",
        "--runtime-arg=json",
    ]


@pytest.mark.parametrize(
    ("stdin_open", "stdin_once", "terminal", "expected"),
    [
        (False, False, False, set()),
        (False, True, False, set()),
        (True, False, False, {"--stdin", "--leave-stdin-open"}),
        (True, True, False, {"--stdin"}),
        (True, True, True, {"--stdin", "--leave-stdin-open", "--terminal"}),
        (False, False, True, {"--terminal"}),
    ],
)
def test_input_ends_with_the_client_only_where_docker_ends_it(
    bundle: Bundle, stdin_open: bool, stdin_once: bool, terminal: bool, expected: set[str]
) -> None:
    bundle = replace(bundle, stdin_open=stdin_open, stdin_once=stdin_once, terminal=terminal)
    flags = {"--stdin", "--leave-stdin-open", "--terminal"}
    assert flags & set(command(PROGRAM, bundle, RUNTIME)) == expected


def test_a_container_that_runs_has_no_exit_status(monitor: Monitor, bundle: Bundle) -> None:
    assert monitor.exit_status(bundle) is None
    assert not monitor.oom(bundle)
    (bundle.directory / "exit").write_text("137")
    (bundle.directory / "oom").touch()
    assert monitor.exit_status(bundle) == 137
    assert monitor.oom(bundle)


async def test_attaching_to_a_container_without_monitor_fails(monitor: Monitor, bundle: Bundle) -> None:
    with pytest.raises(SystemFault, match="the monitor of container abc is gone"):
        await connect(bundle)
    with pytest.raises(SystemFault, match="cannot resize container abc"):
        await monitor.resize(bundle, 1, 1)


# --- a process and its monitor


def monitored(bundle: Bundle, program: str = "sleep") -> MonitoredProcess:
    return MonitoredProcess(bundle, os.getpid(), process.spawn([program, "60"]))


async def reaped(pid: int) -> None:
    await until_async(lambda: process.start_time(pid) is None, "that nothing is left of the monitor", 20)


async def test_one_that_is_let_go_of_unwatched_leaves_no_zombie(bundle: Bundle) -> None:
    found = monitored(bundle)
    found.close()
    found.close()
    os.kill(found.monitor_pid, signal.SIGKILL)
    await reaped(found.monitor_pid)
    with pytest.raises(SystemFault, match="was let go of"):
        await found.wait()


async def test_one_that_is_let_go_of_while_somebody_waits_is_seen_to_its_end(bundle: Bundle) -> None:
    found = monitored(bundle)
    waiting = asyncio.get_running_loop().create_task(found.wait())
    await asyncio.sleep(0)
    found.close()
    assert found.process.has_ended, "nobody knows of it any more"
    os.kill(found.monitor_pid, signal.SIGKILL)
    async with asyncio.timeout(20):
        await waiting
    await reaped(found.monitor_pid)


async def test_one_is_adopted_whose_monitor_is_the_same_process(monitor: Monitor, bundle: Bundle) -> None:
    first = monitored(bundle)
    gone = process.spawn(["true"])
    await process.wait(gone)
    adopted = monitor.adopt(bundle, gone.pid, first.monitor_pid, first.monitor_started)
    assert adopted is not None and adopted.process.has_ended
    assert (adopted.pid, adopted.monitor_pid) == (gone.pid, first.monitor_pid)
    assert adopted.monitor_started == first.monitor_started
    before = len(os.listdir("/proc/self/fd"))
    assert monitor.adopt(bundle, gone.pid, first.monitor_pid, first.monitor_started - 1) is None
    assert monitor.adopt(bundle, os.getpid(), gone.pid, 1) is None
    assert len(os.listdir("/proc/self/fd")) == before
    os.kill(first.monitor_pid, signal.SIGKILL)
    async with asyncio.timeout(20):
        await adopted.process.wait()
        await asyncio.gather(first.wait(), adopted.wait())
    first.close()
    adopted.close()


@pytest.mark.parametrize(
    ("terminal", "said", "error"),
    [
        (True, "", GaveUp),
        (True, "Runtime did not set up terminal", GaveUp),
        (True, "something else", SystemFault),
        (False, "", SystemFault),
    ],
)
async def test_a_monitor_that_missed_the_terminal_gave_up(
    tmp_path: Path, terminal: bool, said: str, error: type[SystemFault]
) -> None:
    program = tmp_path / "conmon"
    line = f'{{"data": -1, "message": "{said}"}}'
    report = f"printf '%s\\n' '{line}' > /proc/self/fd/$_OCI_SYNCPIPE\n" if said else ""
    program.write_text(f"#!/bin/sh\n{report}exit 1\n")
    program.chmod(0o755)
    with pytest.raises(SystemFault) as failed:
        await Monitor(str(program)).create(Bundle("abc", tmp_path, terminal=terminal), RUNTIME)
    assert type(failed.value) is error


async def test_a_missing_conmon_is_named(bundle: Bundle) -> None:
    with pytest.raises(SystemFault, match="cannot run /nonexistent/conmon: No such file or directory"):
        await Monitor("/nonexistent/conmon").create(bundle, RUNTIME)


def test_a_bundle_that_the_disk_takes_only_a_part_of_is_no_bundle(bundle: Bundle) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            bundle.write_config({"hostname": "x" * 5000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_monitor_that_reads_nothing_for_long_is_not_gone(monitor: Monitor, bundle: Bundle) -> None:
    os.mkfifo(bundle.directory / "ctl")
    reader = os.open(bundle.directory / "ctl", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(bundle.directory / "ctl", os.O_WRONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(BlockingIOError):
            while True:
                os.write(writer, b"x" * 4096)
        monitor.reopen_log(bundle)
    finally:
        os.close(reader)
        os.close(writer)
    with pytest.raises(SystemFault, match="the monitor of container abc is gone"):
        monitor.reopen_log(bundle)
