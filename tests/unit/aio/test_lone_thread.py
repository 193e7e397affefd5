"""Work in a thread of its own, on a host that lets none be started, too."""

import os
import threading
from pathlib import Path

import pytest

from husk.aio.lone_thread import in_lone_thread
from husk.errors import Unavailable
from husk.kernel import mount, namespaces
from husk.kernel.nftables import Nftables
from tests.unit.aio.test_thread_pool import no_threads


def test_what_the_thread_gives_or_raises_is_the_callers() -> None:
    assert in_lone_thread(lambda: threading.current_thread().name, "alone") == "alone"
    with pytest.raises(KeyError):
        in_lone_thread(lambda: dict[str, int]()["x"], "alone")


def test_a_host_that_lets_no_thread_be_started_is_told_of_as_that() -> None:
    with no_threads(), pytest.raises(Unavailable, match="lets no thread be started now"):
        in_lone_thread(int, "alone")


def test_who_needs_a_thread_of_his_own_fails_in_these_words() -> None:
    """Work that gives back what a container held goes on past these errors, but never past one of Python's own."""
    with no_threads():
        with pytest.raises(Unavailable):
            namespaces.run_inside(Path("/proc/self/ns/net"), int)
        with pytest.raises(Unavailable):
            mount.remount_in(os.getpid(), [], 0)
        with pytest.raises(Unavailable):
            Nftables().run("list tables")
