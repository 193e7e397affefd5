import asyncio
import random

import pytest

from husk.errors import Unavailable
from husk.swarm.loops import persisting
from husk.swarm.loops.persisting import again_and_again
from tests.support.waiting import soon


async def test_it_is_tried_again_and_later_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persisting, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(random, "uniform", lambda least, most: (least + most) / 2)
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    enough = asyncio.Event()

    async def work() -> None:
        if len(pauses) == 4:
            enough.set()
        if len(pauses) == 2:
            raise KeyError("a fault of ours")
        raise Unavailable("nobody is there")

    running = soon(again_and_again(work, "test"))
    await enough.wait()
    running.cancel()
    assert pauses[:4] == [0.001, 0.002, 0.004, 0.008]
