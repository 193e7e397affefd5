"""A second process does a part of the work, and ends with it."""

import os
import signal
import time
from pathlib import Path

import pytest

from husk.builder.store.workers.aside import Aside


def test_what_the_work_gives():
    with Aside(lambda: b"x" * (1 << 20)) as aside:
        assert aside.answer() == b"x" * (1 << 20)


def test_the_work_is_done_elsewhere():
    with Aside(lambda: str(os.getpid()).encode()) as aside:
        assert aside.answer() not in (None, str(os.getpid()).encode())


def test_work_that_fails_has_no_answer(capfd: pytest.CaptureFixture[str]):
    def work() -> bytes:
        raise OSError("the disk is full")

    with Aside(work) as aside:
        assert aside.answer() is None
    assert "the disk is full" in capfd.readouterr().err


def test_it_ends_with_the_block(tmp_path: Path):
    def work() -> bytes:
        (tmp_path / "new").write_text(str(os.getpid()))
        (tmp_path / "new").rename(tmp_path / "pid")
        signal.pause()
        return b""

    before = set(os.listdir("/proc/self/fd"))
    with Aside(work):
        _wait_for(tmp_path / "pid")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert set(os.listdir("/proc/self/fd")) == before


def test_it_ends_with_the_worker(tmp_path: Path):
    """A kill of the worker kills its second process."""

    def work() -> bytes:
        (tmp_path / "new").write_text(str(os.getpid()))
        (tmp_path / "new").rename(tmp_path / "pid")
        signal.pause()
        return b""

    worker = os.fork()
    if worker == 0:
        with Aside(work):
            signal.pause()
    _wait_for(tmp_path / "pid")
    process = os.pidfd_open(int((tmp_path / "pid").read_text()))
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
    deadline = time.monotonic() + 30
    try:
        while True:
            try:
                signal.pidfd_send_signal(process, 0)
            except ProcessLookupError:
                break
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        os.close(process)


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
