"""Deletions are told as they come."""

import os
from collections.abc import Collection
from typing import cast

from husk.kernel.linkwatch import LinkWatch
from husk.network.deletions import Deletions
from tests.support.waiting import until_async


async def test_names_are_told() -> None:
    reading, writing = os.pipe()
    answers: list[set[str] | None] = [set(), {"vx-1"}, None]
    told: list[Collection[str] | None] = []

    class Watch:
        def fileno(self) -> int:
            return reading

        def deleted(self) -> set[str] | None:
            os.read(reading, 1)
            return answers.pop(0)

        def close(self) -> None:
            os.close(reading)

    listening = Deletions(told.append, lambda: cast(LinkWatch, Watch()))
    os.write(writing, b"123")
    await until_async(lambda: not answers, "all is told")
    listening.close()
    os.close(writing)
    assert told == [{"vx-1"}, None]
