"""A worker that is spoken with, played by a child of our own."""

import os

import pytest

from husk.kernel.process import spawn
from husk.storage.workers.dialogue import Dialogue
from husk.storage.workers.handle import WorkerDied
from husk.storage.workers.nursery import Nursery


class Cats(Nursery):
    """Starts cat, and leaves the outcome to the test."""

    async def spawn(self, module, arguments, descriptors, *, reserve=False):
        self.line = os.dup(descriptors[2])
        return spawn(["cat"], stdin=descriptors[0], stdout=descriptors[1])


async def test_bytes_both_ways_and_a_line():
    nursery = Cats()
    dialogue = await Dialogue.start(nursery, "a.module", [])
    try:
        await dialogue.write(b"hello")
        assert await dialogue.read() == b"hello"
        os.write(nursery.line, b"ok 1\n")
        assert await dialogue.outcome() == "ok 1"
        dialogue.end_input()
        assert await dialogue.read() == b""
        with pytest.raises(WorkerDied):
            await dialogue.write(b"more")
    finally:
        os.close(nursery.line)
        dialogue.stop()
        dialogue.stop()


async def test_no_line_at_all():
    nursery = Cats()
    dialogue = await Dialogue.start(nursery, "a.module", [])
    os.close(nursery.line)
    assert await dialogue.outcome() == ""
    dialogue.stop()
