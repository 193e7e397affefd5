"""How a monitor of an exec is asked, and how a runtime's refusal reads."""

import asyncio
import os
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from husk.runtime import complaints, console
from husk.runtime.conmon import Bundle, read_report
from husk.runtime.exec import ExecMonitor, _Talk
from husk.runtime.oci import OCIRuntime

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

RUNTIME = OCIRuntime("crun", "/usr/bin/crun", (), Path("/run/x"))


def test_only_who_listens_attaches(tmp_path: Path):
    bundle = Bundle("abc", tmp_path)
    monitor = ExecMonitor("/usr/bin/conmon")
    assert "--exec-attach" not in monitor._exec_argv(bundle, RUNTIME, attached=False)
    argv = monitor._exec_argv(bundle, RUNTIME, attached=True)
    assert {"--exec", "--exec-attach"} <= set(argv)
    assert argv[argv.index("--exec-process-spec") + 1] == f"{tmp_path}/process.json"


@pytest.mark.parametrize("attached", [False, True])
def test_no_descriptor_is_left(attached: bool):
    before = os.listdir("/proc/self/fd")
    with ExitStack() as stack:
        talk = _Talk(stack, attached)
        assert len(talk.environment) == (3 if attached else 1)
        talk.spawned()
    assert os.listdir("/proc/self/fd") == before


async def test_a_monitor_that_accepts_nobody_before_the_start_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(console, "_ACCEPT_SECONDS", 600.0)
    program = tmp_path / "conmon"
    program.write_text(f"#!{sys.executable}\n{LATE}")
    program.chmod(0o755)
    async with asyncio.timeout(60):
        started = await ExecMonitor(str(program)).start(Bundle("abc", tmp_path), RUNTIME, {}, attached=True)
        assert started.console is not None
        assert await started.console.read() == (1, b"hello")
    started.console.close()
    os.waitpid(started.monitor_pid, 0)


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
