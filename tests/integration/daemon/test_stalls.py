"""Every daemon of the tests has a watch on its loop, and what holds it fails the test."""

import os
import signal
from pathlib import Path

import pytest

from tests.support.daemon import SOURCES, Daemon
from tests.support.waiting import until

# Python imports it at its start; the daemon then computes for a while when it gets a signal.
HOLDS = """
import signal, sys, time

def hold(number, frame):
    end = time.thread_time() + 0.4
    while time.thread_time() < end:
        pass
    print("it has computed", file=sys.stderr, flush=True)

if "serve" in sys.orig_argv:
    signal.signal(signal.SIGUSR1, hold)
"""


@pytest.fixture
def holding(tmp_path: Path) -> Daemon:
    (tmp_path / "sitecustomize.py").write_text(HOLDS)
    return Daemon(environment={"PYTHONPATH": f"{tmp_path}:{SOURCES}"})


def compute(daemon: Daemon) -> None:
    before = daemon.log_path.read_text().count("it has computed")
    os.kill(daemon.pid, signal.SIGUSR1)
    until(lambda: daemon.log_path.read_text().count("it has computed") > before, "the end of the signal's handler")


def test_what_holds_the_loop_is_named(holding):
    with holding as daemon:
        compute(daemon)
        [line] = until(daemon.stalls, "a stall in the log")
        assert "by hold (" in line and "level=warning" in line
        assert daemon.stalls() == []


def test_a_stall_that_nobody_asked_for_fails_the_test(holding):
    with pytest.raises(AssertionError, match=r"the loop was held for \d+ ms by hold"), holding as daemon:
        compute(daemon)
