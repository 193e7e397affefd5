"""A worker that is spoken with, played by a child of our own."""

import os

import pytest

from husk.builder.store.workers.dialogue import Dialogue
from husk.builder.store.workers.jobs import SendJob
from husk.kernel.process import spawn
from husk.storage.workers.answers import Sent
from husk.storage.workers.handle import WorkerDied
from husk.storage.workers.messages import encode
from husk.storage.workers.nursery import Nursery

JOB = SendJob("/", "")


class Cats(Nursery):
    """Starts cat, and leaves the outcome to the test."""

    async def spawn(self, job, descriptors, *, reserve=False):
        self.line = os.dup(descriptors[2])
        return spawn(["cat"], stdin=descriptors[0], stdout=descriptors[1])


async def test_bytes_both_ways_and_an_answer():
    nursery = Cats()
    dialogue = await Dialogue.start(nursery, JOB)
    try:
        await dialogue.write(b"hello")
        assert await dialogue.read() == b"hello"
        os.write(nursery.line, encode(Sent(1)))
        assert await dialogue.outcome() == Sent(1)
        dialogue.end_input()
        assert await dialogue.read() == b""
        with pytest.raises(WorkerDied):
            await dialogue.write(b"more")
    finally:
        os.close(nursery.line)
        dialogue.stop()
        dialogue.stop()


async def test_no_answer_at_all():
    nursery = Cats()
    dialogue = await Dialogue.start(nursery, JOB)
    os.close(nursery.line)
    assert await dialogue.outcome() is None
    dialogue.stop()
