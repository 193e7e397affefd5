import asyncio

from husk.aio.tasks import Tasks
from husk.engine.model.clock import now_ns
from husk.errors import Unavailable
from husk.swarm.loops import again_and_again, keep_looking
from tests.support.waiting import soon, until_async


async def test_it_is_tried_again_and_later_each_time() -> None:
    pauses: list[float] = []

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    enough = asyncio.Event()

    async def work() -> None:
        if len(pauses) == 4:
            enough.set()
        if len(pauses) == 2:
            raise KeyError("a fault of ours")
        raise Unavailable("nobody is there")

    running = soon(again_and_again(work, "test", (0.001, 5.0), noted, lambda least, most: (least + most) / 2))
    await enough.wait()
    running.cancel()
    assert pauses[:4] == [0.001, 0.002, 0.004, 0.008]


async def test_it_looks_when_it_is_woken_when_an_alarm_is_due_and_after_a_fault() -> None:
    woken, tasks = asyncio.Event(), Tasks()
    looks: list[str] = []
    failures: list[str] = []
    answers: list[int | Exception | None] = [now_ns() + 10**6, ValueError("a fault"), None, None]

    async def look() -> int | None:
        looks.append("woken" if not woken.is_set() else "still")
        answer = answers[len(looks) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    tasks.spawn(keep_looking(woken, look, lambda error: failures.append(str(error)), retry_ns=1), "loop")
    await asyncio.sleep(0)
    assert looks == []
    woken.set()
    # By the alarm, and once more since that look failed; then nobody wakes it.
    await until_async(lambda: len(looks) == 3, "three looks")
    assert failures == ["a fault"] and set(looks) == {"woken"}
    await asyncio.sleep(0.01)
    assert len(looks) == 3
    woken.set()
    await until_async(lambda: len(looks) == 4, "the look that was asked for")
    await tasks.cancel_all()


async def test_it_ends_when_it_is_cancelled_just_as_it_is_woken() -> None:
    for turns in range(6):
        woken, looked = asyncio.Event(), asyncio.Event()

        async def look(looked: asyncio.Event = looked) -> int:
            looked.set()
            return now_ns() + 3600 * 10**9

        tasks = Tasks()
        loop = tasks.spawn(keep_looking(woken, look, lambda error: None), "loop")
        woken.set()
        await looked.wait()
        await asyncio.sleep(0)
        woken.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        loop.cancel()
        done, _ = await asyncio.wait([loop], timeout=5)
        assert done, f"cancelled {turns} turns after it was woken, it goes on"
        await tasks.cancel_all()
