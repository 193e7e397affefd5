"""A worker that reads foreign text: what it says, and that it has an end whatever the text does to it."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from husk.aio.tasks import Tasks
from husk.builder.store.workers.parser import Parser, Parsers
from husk.errors import InvalidParameter, SystemFault
from husk.storage.workers.nursery import Nursery

MODULE = "husk_test_answerer"
ANSWERER = """
import os, signal, time

def warm_up():
    pass

class Answerer:
    asked = 0

    def turn(self, question):
        self.asked += 1
        if question == b"loop":
            while True:
                pass
        if question == b"memory":
            kept = []
            while True:
                kept.append(bytes(1 << 20))
        if question == b"deep":
            self.turn(next(self.turn(b"deep")))
        if question == b"bug":
            raise KeyError("x")
        if question == b"killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if question == b"much":
            for _ in range(100):
                yield bytes(1 << 20)
        yield str(self.asked).encode()
        yield question
        yield str(os.getpid()).encode()
"""


@pytest.fixture
async def nursery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Nursery]:
    (tmp_path / f"{MODULE}.py").write_text(ANSWERER)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def parsers(nursery: Nursery) -> Parsers:
    return Parsers(nursery, memory=64 << 20, seconds=1, most=10 << 20, turns=1)


async def say(parser: Parser, question: bytes) -> list[bytes]:
    async with aclosing(parser.ask(question)) as pieces:
        return [piece async for piece in pieces]


async def test_one_worker_answers_all_questions_and_ends_with_the_block(parsers: Parsers) -> None:
    large = bytes(range(256)) * 10_000
    async with parsers.begin(MODULE) as parser:
        first = await say(parser, b"one")
        second = await say(parser, large)
    assert (first[:2], second[:2]) == ([b"1", b"one"], [b"2", large])
    assert first[2] == second[2]
    await gone(int(first[2]))


async def gone(pid: int) -> None:
    async with asyncio.timeout(30):
        while Path(f"/proc/{pid}").exists():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("question", "complaint"),
    [
        (b"loop", "more than 1 s of a processor"),
        (b"memory", "more than 64 MiB of memory"),
        (b"deep", "nested too deeply"),
        (b"killed", "was ended: it takes more than 1 s of a processor or 64 MiB of memory"),
        (b"much", "more than 10 MiB"),
    ],
)
async def test_what_takes_too_much_is_refused(parsers: Parsers, question: bytes, complaint: str) -> None:
    with pytest.raises(InvalidParameter, match=complaint):
        async with parsers.begin(MODULE) as parser:
            await say(parser, question)
    async with parsers.begin(MODULE) as parser:
        assert await say(parser, b"next"), "others are not held up"


async def test_an_error_of_ours_is_one(parsers: Parsers) -> None:
    with pytest.raises(SystemFault, match="see the daemon's log"):
        async with parsers.begin(MODULE) as parser:
            await say(parser, b"bug")
    with pytest.raises(SystemFault):
        async with parsers.begin("husk.no_such_module") as parser:
            await say(parser, b"x")


async def test_whoever_is_cancelled_leaves_no_worker_and_no_turn_taken(parsers: Parsers) -> None:
    pids: list[int] = []

    async def ask() -> None:
        async with parsers.begin(MODULE) as parser:
            pids.append(int((await say(parser, b"x"))[2]))
            await say(parser, b"loop")

    tasks = Tasks()
    asking = tasks.spawn(ask(), "ask", awaited=True)
    async with asyncio.timeout(30):
        while not pids:
            await asyncio.sleep(0.01)
    asking.cancel()
    await asyncio.wait([asking])
    await gone(pids[0])
    async with parsers.begin(MODULE) as parser:
        assert await say(parser, b"next")


async def test_a_module_is_loaded_before_it_is_wanted(parsers: Parsers, nursery: Nursery, tmp_path: Path) -> None:
    parsers.expect(MODULE)
    async with parsers.begin(MODULE) as parser:
        assert await say(parser, b"x")
    (tmp_path / f"{MODULE}.py").write_text("raise RuntimeError('loaded a second time')")
    async with parsers.begin(MODULE) as parser:
        assert await say(parser, b"x")
