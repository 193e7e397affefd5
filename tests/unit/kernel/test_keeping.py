"""The process that keeps what programs leave behind, with shells as programs."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from husk.kernel import keeping

# A program that leaves a process and does not wait for its end. A shell may: that of a job that ends early.
LEAVES = """
import os
if not (left := os.fork()):
    {first}
    os._exit({status})
open(os.environ["PID"], "w").write(str(left))
{then}
"""


class Keeper:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.line.settimeout(20)
        with theirs:
            self.owner = subprocess.Popen(["sleep", "600"])
            command = [sys.executable, "-I", "-S", keeping.__file__, str(self.owner.pid)]
            self.process = subprocess.Popen(command, stdin=theirs.fileno())
        assert self.heard() == {"id": 0}

    def start(self, script: str, number: int = 1, program: str = "/bin/sh") -> None:
        """`$PID` is the file for the pid of what the script leaves; `output` has what it writes."""
        reader, writer = os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        pid = str(self.directory / f"pid{number}")
        asked = {"id": number, "argv": [program, "-c", script], "env": {"PID": pid, "PATH": os.environ["PATH"]}}
        message = {**asked, "pid": pid, "exit": str(self.directory / f"exit{number}")}
        socket.send_fds(self.line, [json.dumps(message).encode()], [null, writer, null])
        os.close(writer)
        os.close(null)
        self.output = reader

    def heard(self) -> dict[str, Any]:
        return dict(json.loads(self.line.recv(4096)))

    def exit(self, number: int = 1) -> str:
        return (self.directory / f"exit{number}").read_text()


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    keeper = Keeper(tmp_path)
    try:
        yield keeper
    finally:
        keeper.line.close()
        assert keeper.process.wait(20) == 0
        keeper.owner.kill()
        keeper.owner.wait()


def test_what_a_program_leaves_is_told_with_its_end(keeper: Keeper) -> None:
    keeper.start(LEAVES.format(first="print('out', flush=True)", status=3, then=""), program=sys.executable)
    made, ended = keeper.heard(), keeper.heard()
    assert (made["id"], made["status"], ended) == (1, 0, {"id": 1, "exit": 3})
    assert made["pid"] == int((keeper.directory / "pid1").read_text())
    assert keeper.exit() == "3"
    assert os.read(keeper.output, 100) == b"out\n"
    os.close(keeper.output)


def test_the_end_of_one_that_ends_before_its_program_is_not_lost(keeper: Keeper) -> None:
    sees_its_end = "os.waitid(os.P_PID, left, os.WEXITED | os.WNOWAIT)"
    keeper.start(LEAVES.format(first="pass", status=7, then=sees_its_end), program=sys.executable)
    assert keeper.heard()["status"] == 0
    assert keeper.heard() == {"id": 1, "exit": 7}
    os.close(keeper.output)


def test_one_that_is_killed_has_the_status_of_a_shell(keeper: Keeper) -> None:
    keeper.start("sleep 60 & echo $! > $PID")
    os.kill(keeper.heard()["pid"], signal.SIGKILL)
    assert keeper.heard() == {"id": 1, "exit": 137}
    os.close(keeper.output)


def test_programs_that_fail_leave_nothing(keeper: Keeper) -> None:
    keeper.start("exit 4")
    assert keeper.heard() == {"id": 1, "status": 4, "pid": 0}
    os.close(keeper.output)
    keeper.start("", 2, "/no/such/program")
    said = keeper.heard()
    assert (said["status"], said["pid"], said["error"]) == (
        127,
        0,
        "cannot run /no/such/program: No such file or directory",
    )
    os.close(keeper.output)


def test_a_program_that_takes_too_long_can_be_dropped(keeper: Keeper) -> None:
    keeper.start("exec sleep 60")
    keeper.line.send(json.dumps({"id": 1, "drop": True}).encode())
    assert keeper.heard() == {"id": 1, "status": 137, "pid": 0}
    os.close(keeper.output)


def test_signals_are_as_programs_expect_them(keeper: Keeper) -> None:
    keeper.start("grep SigIgn /proc/self/status; grep SigBlk /proc/self/status")
    assert keeper.heard()["status"] == 0
    _, ignored, _, blocked = os.read(keeper.output, 200).split()
    # What this test inherited from its own parent is no matter.
    assert int(ignored, 16) & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1) == int(blocked, 16) == 0
    os.close(keeper.output)


def test_all_end_with_who_asked_for_them(keeper: Keeper) -> None:
    keeper.start("sleep 60 & echo $! > $PID")
    assert keeper.heard()["pid"]
    os.close(keeper.output)
    keeper.start("sleep 60 & echo $! > $PID; sleep 0.2", 2)
    os.close(keeper.output)
    keeper.line.close()
    assert keeper.process.wait(20) == 0
    assert keeper.exit(1) == "137"


def test_a_forked_child_that_holds_the_line_keeps_nothing_alive(keeper: Keeper) -> None:
    keeper.start("sleep 60 & echo $! > $PID")
    assert keeper.heard()["pid"]
    os.close(keeper.output)
    keeper.owner.kill()
    assert keeper.process.wait(20) == 0
    assert keeper.exit() == "137"


def test_one_that_its_program_has_waited_for_has_no_known_end(keeper: Keeper) -> None:
    keeper.start("sh -c 'exit 7' & echo $! > $PID; wait")
    assert keeper.heard()["status"] == 0
    assert keeper.heard() == {"id": 1, "exit": 255}
    os.close(keeper.output)
