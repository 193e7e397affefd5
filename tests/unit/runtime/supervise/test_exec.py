"""The command to a monitor of an exec, and the reading of a runtime's refusal."""

import asyncio
import os
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from husk.runtime import complaints
from husk.runtime.oci import OCIRuntime
from husk.runtime.supervise import console as consoles
from husk.runtime.supervise.conmon import Bundle, read_report
from husk.runtime.supervise.exec import ExecMonitor, _Talk, exec_command

# What conmon does for an exec without a terminal: nobody is accepted before the process is to be started.
LATE = """\
import os, socket
pipes = {name: int(os.environ[f"_OCI_{name}PIPE"]) for name in ("START", "ATTACH", "SYNC")}
os.read(pipes["START"], 1)
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("attach")
listener.listen()
os.write(pipes["ATTACH"], b'{"data": 0}\\n')
os.read(pipes["START"], 1)
listener.accept()[0].send(b"\\x02hello")
os.write(pipes["SYNC"], b'{"data": 42}\\n')
"""

# What conmon does for one with a terminal: it is busy for a moment before it waits in its loop.
BUSY = """\
import os, socket, time
pipes = {name: int(os.environ[f"_OCI_{name}PIPE"]) for name in ("START", "ATTACH", "SYNC")}
os.read(pipes["START"], 1)
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("attach")
listener.listen()
os.set_blocking(pipes["START"], False)
os.write(pipes["ATTACH"], b'{"data": 0}\\n')
listener.setblocking(False)
told, end = False, time.monotonic() + 0.3
while time.monotonic() < end:
    try:
        told = bool(os.read(pipes["START"], 1)) or told
    except BlockingIOError:
        pass
    try:
        client = listener.accept()
    except BlockingIOError:
        pass
os.set_blocking(pipes["START"], True)
told or os.read(pipes["START"], 1)
os.write(pipes["SYNC"], b'{"data": -1, "message": "too early"}\\n' if told else b'{"data": 42}\\n')
"""

RUNTIME = OCIRuntime("crun", "/usr/bin/crun", (), Path("/run/x"))


def test_only_who_is_held_is_told_to_wait(tmp_path: Path):
    bundle = Bundle("abc", tmp_path)
    program = "/usr/bin/conmon"
    assert "--exec-attach" not in exec_command(program, bundle, RUNTIME, held=False)
    argv = exec_command(program, bundle, RUNTIME, held=True)
    assert {"--exec", "--exec-attach"} <= set(argv)
    assert argv[argv.index("--exec-process-spec") + 1] == f"{tmp_path}/process.json"


@pytest.mark.parametrize("held", [False, True])
def test_no_descriptor_is_left(held: bool):
    before = os.listdir("/proc/self/fd")
    with ExitStack() as stack:
        talk = _Talk(stack, held)
        assert len(talk.environment) == (3 if held else 1)
        talk.spawned()
    assert os.listdir("/proc/self/fd") == before


async def test_a_monitor_that_accepts_nobody_before_the_start_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(consoles, "_ACCEPT_SECONDS", 600.0)
    program = tmp_path / "conmon"
    program.write_text(f"#!{sys.executable}\n{LATE}")
    program.chmod(0o755)
    async with asyncio.timeout(60):
        started = await ExecMonitor(str(program)).start(Bundle("abc", tmp_path), RUNTIME, {}, attached=True)
        console = await started.attach()
        assert await console.read() == (1, b"hello")
        console.close()
        await started.wait()
    started.close()


@pytest.mark.parametrize("attached", [False, True])
async def test_a_terminals_process_is_not_started_before_the_monitor_waits(tmp_path: Path, attached: bool):
    program = tmp_path / "conmon"
    program.write_text(f"#!{sys.executable}\n{BUSY}")
    program.chmod(0o755)
    bundle = Bundle("abc", tmp_path, terminal=True)
    async with asyncio.timeout(60):
        started = await ExecMonitor(str(program)).start(bundle, RUNTIME, {}, attached=attached)
        assert started.pid == 42
        if attached:
            (await started.attach()).close()
        await started.wait()
    started.close()


async def test_the_exit_status_may_follow_the_pid_at_once():
    reader, writer = os.pipe2(os.O_NONBLOCK)
    os.write(writer, b'{"data": 42}\n{"data": 3}\n')
    report = await read_report(reader)
    assert report is not None and report.data == 42
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize(
    "said, told, code",
    [
        (
            "executable file `x` not found in $PATH: No such file or directory",
            'unable to start container process: exec: "x": executable file not found in $PATH',
            127,
        ),
        ("open executable: Permission denied", 'unable to start container process: exec: "x": permission denied', 126),
        (
            "chdir `/a`: No such file or directory",
            'unable to start container process: chdir to cwd ("/a") set in config.json failed: '
            "no such file or directory",
            127,
        ),
    ],
)
def test_refusals_read_as_with_runc(said: str, told: str, code: int):
    message = complaints.fault("crun", "exec", said, "x")
    assert message == f"OCI runtime exec failed: exec failed: {told}: unknown"
    assert complaints.exit_code(message) == code
    assert complaints.fault("runc", "exec", f"exec failed: {told}", "x") == message
