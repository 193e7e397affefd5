"""A watch on an event loop names what holds it."""

import asyncio
import time

import pytest
import uvloop

from husk.aio import stalls
from husk.aio.stalls import Looks


class Heard:
    def __init__(self) -> None:
        self.stalls: list[tuple[float, str]] = []

    def __call__(self, held: float, where: str) -> None:
        self.stalls.append((held, where))


def compute(seconds: float) -> None:
    """As processor time of this thread."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.fixture(params=["asyncio", "uvloop"])
def runner(request: pytest.FixtureRequest):
    with asyncio.Runner(loop_factory=uvloop.new_event_loop if request.param == "uvloop" else None) as runner:
        yield runner


def test_a_callback_that_computes_is_named(runner):
    heard = Heard()

    async def main():
        with stalls.watched(asyncio.get_running_loop(), heard):
            await asyncio.sleep(0.05)
            asyncio.get_running_loop().call_soon(compute, 0.3)
            await asyncio.sleep(0.05)
            while not heard.stalls:
                await asyncio.sleep(0.01)

    runner.run(main())
    [(held, where)] = heard.stalls
    assert stalls.LIMIT <= held < 0.35
    assert where.startswith("compute (") and "test_stalls.py" in where


def test_steps_of_a_task_are_callbacks_of_their_own(runner):
    heard = Heard()

    async def main():
        with stalls.watched(asyncio.get_running_loop(), heard):
            for _ in range(40):
                compute(0.02)
                await asyncio.sleep(0)

    runner.run(main())
    assert heard.stalls == []


def test_many_short_callbacks_are_nobodys_fault(runner):
    heard = Heard()

    async def main():
        with stalls.watched(asyncio.get_running_loop(), heard):
            for _ in range(200):
                asyncio.get_running_loop().call_soon(compute, 0.004)
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    runner.run(main())
    assert heard.stalls == []


def test_what_looks_late_accuses_nobody(runner):
    """Others may have the interpreter whenever the watch wants it."""
    heard = Heard()

    def late() -> float:
        time.sleep(3 * stalls.LIMIT)
        return 0.0

    async def main():
        with stalls.watched(asyncio.get_running_loop(), heard, late):
            for _ in range(250):
                compute(0.004)
                await asyncio.sleep(0)

    runner.run(main())
    assert heard.stalls == []


def test_a_thread_that_holds_the_interpreter_is_seen_when_it_has_ended(runner):
    heard = Heard()

    async def main():
        # On a busy host the watch itself gets no processor most of the time, and then accuses nobody.
        with stalls.watched(asyncio.get_running_loop(), heard, lambda: 0.0):
            await asyncio.sleep(0.05)
            while not heard.stalls:  # the watch may come too late for one
                sum(range(15_000_000))
                await asyncio.sleep(0.05)

    runner.run(main())
    assert [where.split(" ", 1)[0].rpartition(".")[2] for _, where in heard.stalls][:1] == ["main"]


def test_waiting_is_not_computing(runner):
    heard = Heard()

    async def main():
        with stalls.watched(asyncio.get_running_loop(), heard):
            time.sleep(0.3)  # as a kernel that takes its time

    runner.run(main())
    assert heard.stalls == []


def test_a_stall_is_one_line_of_the_log(caplog):
    stalls.log_stall(0.1304, "decode (rpc/protobuf.py:81)")
    assert caplog.messages == ["the loop was held for 130 ms by decode (rpc/protobuf.py:81)"]


class Seen:
    """Looks at a thread whose clock the test moves."""

    def __init__(self) -> None:
        self.heard = Heard()
        self.looks = Looks(0.0, self.heard)
        self.now = 0.0

    def run(self, seconds: float, root: object, turn: int = 0, blind: float = 0.0) -> None:
        self.now += seconds
        self.looks.running(self.now, root, turn, lambda: str(root), blind)

    @property
    def told(self) -> list[tuple[int, str]]:
        return [(round(held * 1000), where) for held, where in self.heard.stalls]


def test_it_is_told_when_it_is_over():
    seen = Seen()
    for _ in range(10):
        seen.run(0.02, "a")
    assert seen.told == []
    seen.looks.idle()
    seen.looks.idle()
    assert seen.told == [(180, "a")]


def test_what_goes_on_for_long_is_told_before_it_is_over():
    seen = Seen()
    for _ in range(52):
        seen.run(0.02, "a")
    assert seen.told == [(1000, "a")]


def test_another_turn_is_another_callback():
    seen = Seen()
    for turn in range(20):
        seen.run(0.05, "a", turn)
    seen.looks.idle()
    assert seen.told == []


def test_what_lets_nobody_look_is_told_whole():
    seen = Seen()
    seen.run(0.01, "a")
    seen.run(5.0, "b")
    seen.run(0.01, None)
    assert seen.told == [(5000, "b")]


def test_who_got_no_processor_to_look_accuses_nobody():
    seen = Seen()
    seen.run(0.01, "a")
    seen.run(0.3, "b", blind=0.25)
    seen.looks.idle()
    assert seen.told == []
