"""A pool of threads on a host that lets none be started, and with threads that never end."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from husk.aio.thread_pool import ThreadPool
from husk.errors import Unavailable


@contextmanager
def no_threads() -> Iterator[None]:
    """Meanwhile no thread can be started."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        yield


def test_work_is_done_by_as_many_threads_as_may_be() -> None:
    workers = ThreadPool(2, "some")
    gate, begun = threading.Event(), threading.Semaphore(0)

    def work(number: int) -> tuple[int, str]:
        begun.release()
        gate.wait(10)
        return number, threading.current_thread().name

    futures = [workers.submit(work, number) for number in range(5)]
    for _ in range(2):
        assert begun.acquire(timeout=10)
    assert not begun.acquire(blocking=False)
    gate.set()
    assert [future.result(10)[0] for future in futures] == list(range(5))
    assert {future.result()[1] for future in futures} == {"some_0", "some_1"}
    workers.shutdown()


def test_one_thread_is_enough_for_what_comes_one_after_the_other() -> None:
    workers = ThreadPool(8, "some")
    names = {workers.submit(lambda: threading.current_thread().name).result(10) for _ in range(20)}
    assert len(names) < 8  # one that is about to wait may be missed
    workers.shutdown()


def test_failures_are_told() -> None:
    workers = ThreadPool(1, "some")
    with pytest.raises(KeyError):
        workers.submit(dict[str, int]().__getitem__, "x").result(10)
    workers.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        workers.submit(int)


def test_where_no_thread_can_be_started_the_work_is_refused_and_never_done() -> None:
    done: list[str] = []
    workers = ThreadPool(2, "some")
    with no_threads(), pytest.raises(Unavailable, match="lets no thread be started now: can't start new thread"):
        workers.submit(done.append, "refused")
    workers.submit(done.append, "taken").result(10)
    workers.shutdown()
    assert done == ["taken"]


def test_where_no_more_can_be_started_those_that_are_there_do_it() -> None:
    workers, gate, begun = ThreadPool(4, "some"), threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        gate.wait(10)

    waiting = workers.submit(wait)
    assert begun.wait(10)
    with no_threads():
        late = workers.submit(int, "7")
    gate.set()
    assert late.result(10) == 7 and waiting.done()
    workers.shutdown()


def test_the_end_does_not_wait_for_a_thread_that_is_lost() -> None:
    workers, gate, begun = ThreadPool(1, "some", patience=0.0), threading.Event(), threading.Event()

    def lost() -> None:
        begun.set()
        gate.wait(60)

    workers.submit(lost)
    assert begun.wait(10)
    workers.shutdown()
    gate.set()


async def test_it_is_the_pool_of_a_loop() -> None:
    workers = ThreadPool(1, "loops-own")
    asyncio.get_running_loop().set_default_executor(workers)
    assert (await asyncio.to_thread(lambda: threading.current_thread().name)) == "loops-own_0"


def test_what_was_cancelled_is_not_done() -> None:
    done: list[int] = []
    workers, gate, begun = ThreadPool(1, "some"), threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        gate.wait(10)

    workers.submit(wait)
    assert begun.wait(10)
    late = workers.submit(done.append, 1)
    assert late.cancel()
    gate.set()
    workers.shutdown()
    assert done == []
