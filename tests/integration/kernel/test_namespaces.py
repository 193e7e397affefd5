"""Network namespaces held by files: made whole or not at all, entered by a thread, and given up."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.kernel import namespaces


def own() -> str:
    return os.readlink("/proc/thread-self/ns/net")


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "netns"
    yield path
    namespaces.remove(path)


def test_work_is_done_inside_and_nobody_else_goes_there(held: Path) -> None:
    before = own()
    made = namespaces.create(held, lambda descriptor: own())
    assert made != before == own()
    assert namespaces.run_inside(held, own) == made
    assert namespaces.run_inside(held, lambda: os.listdir("/proc/thread-self/net")) is not None


def test_a_setup_that_fails_leaves_nothing(held: Path) -> None:
    def fail(descriptor: int) -> None:
        assert held.exists(), "whoever sweeps finds it whatever happens"
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        namespaces.create(held, fail)
    assert not held.exists()
    namespaces.remove(held)


def test_one_that_is_there_is_not_made_again(held: Path) -> None:
    made = namespaces.create(held, lambda descriptor: own())
    with pytest.raises(FileExistsError):
        namespaces.create(held, lambda descriptor: own())
    assert namespaces.run_inside(held, own) == made


def test_work_may_visit_the_host_and_comes_back(held: Path) -> None:
    with namespaces.home() as host:
        there = own()

        def work(descriptor: int) -> tuple[str, str]:
            def fail() -> None:
                raise KeyError("x")

            with pytest.raises(KeyError):
                namespaces.visit(host, descriptor, fail)
            return namespaces.visit(host, descriptor, own), own()

        visited, back = namespaces.create(held, work)
    assert visited == there and back == namespaces.run_inside(held, own)


def test_what_holds_none_cannot_be_entered(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="enter network namespace"):
        namespaces.run_inside(tmp_path / "file", own)
    with pytest.raises(FileNotFoundError):
        namespaces.run_inside(tmp_path / "nothing", own)


def test_one_daemon_at_a_time_chooses(tmp_path: Path) -> None:
    order: list[str] = []
    waiting = threading.Event()

    def second() -> None:
        waiting.set()
        with namespaces.exclusive():
            order.append("second")

    with namespaces.exclusive():
        thread = threading.Thread(target=second)
        thread.start()
        waiting.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
