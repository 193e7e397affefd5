"""The process that forks workers, asked over its socket: workers come and leave, and so does it."""

import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import husk
from husk.storage.workers.answers import Done
from husk.storage.workers.jobs import DiffJob
from husk.storage.workers.messages import encode
from husk.storage.workers.pipes import AnswerReader


class Forker:
    def __init__(self) -> None:
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        source = Path(husk.__file__).parent.parent
        code = "from husk.storage.workers.forker import main; main()"
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code], stdin=theirs.fileno(), stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": str(source)},
            )  # fmt: skip
        self.channel.settimeout(30)

    def fork(self) -> tuple[int, socket.socket]:
        """The descriptor of a new worker's process, and the line to it."""
        self.channel.send(b"more")
        said, (child, line), _, _ = socket.recv_fds(self.channel, 100, 2)
        assert said == b"ok"
        return child, socket.socket(fileno=line)

    def close(self) -> None:
        self.channel.close()
        self.process.wait(timeout=30)
        assert self.process.stderr is not None
        self.process.stderr.close()


@pytest.fixture
def forker() -> Iterator[Forker]:
    made = Forker()
    yield made
    made.close()


def ended(child: int) -> bool:
    found = bool(select.select([child], [], [], 30)[0])
    os.close(child)
    return found


def name_of(child: int) -> str:
    text = Path(f"/proc/self/fdinfo/{child}").read_text()
    pid = next(line.split()[1] for line in text.splitlines() if line.startswith("Pid:"))
    return Path(f"/proc/{pid}/comm").read_text().strip()


def test_a_worker_does_its_job_and_leaves(forker: Forker, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    child, line = forker.fork()
    reading, writing = os.pipe()
    report, answers = os.pipe()
    null = os.open(os.devnull, os.O_RDONLY)
    with line:
        socket.send_fds(line, [encode(DiffJob(str(tmp_path)))], [null, writing, answers])
    for descriptor in (writing, answers, null):
        os.close(descriptor)
    assert b"file" in os.read(reading, 1 << 16)
    found = AnswerReader()
    while data := os.read(report, 1 << 16):
        found.feed(data)
    assert found.next() == Done() and ended(child)
    os.close(reading)
    os.close(report)


def test_one_that_gets_no_work_leaves(forker: Forker) -> None:
    children = [forker.fork() for _ in range(3)]
    for child, line in children:
        line.close()
        assert ended(child)


def test_nonsense_ends_the_worker_and_not_the_forker(forker: Forker) -> None:
    child, line = forker.fork()
    line.send(b"nonsense")
    line.close()
    assert ended(child)
    child, line = forker.fork()
    assert name_of(child) in ("husk-idle", "python", "python3", Path(sys.executable).name[:15])
    line.close()
    assert ended(child)


def test_it_leaves_with_the_daemon(forker: Forker) -> None:
    forker.channel.close()
    assert forker.process.wait(timeout=30) == 0


def test_who_asked_it_may_end_without_an_answer() -> None:
    forker = Forker()
    forker.channel.send(b"more")
    assert select.select([forker.channel], [], [], 30)[0]
    forker.channel.close()  # with an answer in it that nobody has read
    assert forker.process.stderr is not None
    assert (forker.process.wait(timeout=30), forker.process.stderr.read()) == (0, b"")
    forker.process.stderr.close()


def test_workers_end_with_it(forker: Forker) -> None:
    child, line = forker.fork()
    assert not select.select([child], [], [], 0.2)[0]
    forker.process.kill()
    assert select.select([child], [], [], 30)[0]
    line.close()
    os.close(child)
