"""Deletions are told as they come."""

import os
from collections.abc import Collection

from husk.network import deletions
from husk.network.deletions import Deletions


async def test_names_are_told(monkeypatch):
    reading, writing = os.pipe()
    answers: list[set[str] | None] = [set(), {"vx-1"}, None]
    told: list[Collection[str] | None] = []

    class Watch:
        def fileno(self):
            return reading

        def deleted(self):
            return answers.pop(0)

        def close(self):
            os.close(reading)

    monkeypatch.setattr(deletions, "LinkWatch", Watch)
    listening = Deletions(told.append)
    while answers:
        listening._noticed()
    listening.close()
    os.close(writing)
    assert told == [{"vx-1"}, None]
