"""Memory goes back once nothing was done for a while, and once only."""

import asyncio
import threading

from husk.runtime.rest import Rest


async def test_it_rests_after_the_last_piece_of_work() -> None:
    given = asyncio.Event()
    count = 0

    def give_back() -> None:
        nonlocal count
        count += 1
        loop.call_soon_threadsafe(given.set)

    loop = asyncio.get_running_loop()
    rest = Rest(0.01, give_back)
    for _ in range(3):
        rest.worked()
    async with asyncio.timeout(10):
        await given.wait()
    assert count == 1
    await rest.close()


async def test_work_that_ends_meanwhile_puts_it_off() -> None:
    pauses: list[float] = []
    rest = Rest(5, lambda: pauses.append(0))
    rest.worked()
    await asyncio.sleep(0)
    rest.worked()
    # Who closes does not wait for the pause, and nothing is given back.
    await rest.close()
    assert pauses == []


async def test_the_next_work_begins_the_next_pause() -> None:
    given: asyncio.Queue[None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def give_back() -> None:
        loop.call_soon_threadsafe(given.put_nowait, None)

    rest = Rest(0, give_back)
    async with asyncio.timeout(10):
        for _ in range(2):
            rest.worked()
            await given.get()
            await rest._tasks.join()
    await rest.close()


async def test_work_that_ends_while_memory_is_given_back_has_its_own_pause() -> None:
    loop, begun, goes_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    count = 0

    def give_back() -> None:
        nonlocal count
        count += 1
        loop.call_soon_threadsafe(begun.set)
        assert goes_on.wait(10)

    rest = Rest(0, give_back)
    rest.worked()
    async with asyncio.timeout(10):
        await begun.wait()
        rest.worked()
        goes_on.set()
        await rest._tasks.join()
    assert count == 2
    await rest.close()
