import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from husk.aio.tasks import Tasks
from husk.client.output import Piece
from husk.dashboard.log_lines import Line, LineMaker, batches


def out(text: str) -> Piece:
    return Piece("stdout", text.encode())


def test_lines_of_two_streams_are_put_together() -> None:
    maker = LineMaker()
    assert list(maker.feed(out("t1 a"))) == []
    assert list(maker.feed(Piece("stderr", b"t2 bad\n"))) == [("t2", "stderr", "bad")]
    assert list(maker.feed(out("b c\r\nt3 \nt4 rest"))) == [("t1", "stdout", "ab c"), ("t3", "stdout", "")]
    assert list(maker.rest()) == [("t4", "stdout", "rest")]


def test_only_lines_with_the_words_are_given() -> None:
    assert list(LineMaker("ERR").feed(out("t1 fine\nt2 an error\n"))) == [("t2", "stdout", "an error")]


def test_bytes_that_are_no_text_are_shown_somehow() -> None:
    assert list(LineMaker().feed(Piece("stdout", b"t1 \xff\n"))) == [("t1", "stdout", "\N{REPLACEMENT CHARACTER}")]


def test_a_line_without_an_end_is_cut() -> None:
    [(_, _, text)] = LineMaker().feed(out("t1 " + "x" * 70_000))
    assert len(text) == 70_000


def test_what_follows_in_a_line_that_was_cut_is_of_its_time() -> None:
    maker = LineMaker()
    list(maker.feed(out("t1 " + "x" * 70_000)))
    assert list(maker.feed(out("t9 forged\nt2 next\n"))) == [("t1", "stdout", "t9 forged"), ("t2", "stdout", "next")]
    list(maker.feed(out("t3 " + "x" * 70_000)))
    list(maker.feed(Piece("stderr", b"t4 other\n")))
    assert list(maker.feed(out("rest"))) == []
    assert list(maker.rest()) == [("t3", "stdout", "rest")]


async def collected(pieces: AsyncIterator[Piece]) -> list[list[Line]]:
    tasks = Tasks()
    found = [batch async for batch in batches(pieces, "", tasks)]
    assert tasks.count == 0
    return found


async def test_many_lines_are_few_batches_and_none_is_lost() -> None:
    async def many() -> AsyncIterator[Piece]:
        for number in range(50_000):
            yield out(f"t {number}\n")
        yield out("t end")

    found = await collected(many())
    lines = [text for batch in found for _, _, text in batch]
    assert lines == [*map(str, range(50_000)), "end"]
    assert max(map(len, found)) <= 2000 and len(found) < 100


async def test_one_line_does_not_wait_for_others() -> None:
    more = asyncio.Event()

    async def slow() -> AsyncIterator[Piece]:
        yield out("t one\n")
        await more.wait()
        yield out("t two\n")

    found = batches(slow(), "", Tasks())
    assert await anext(found) == [("t", "stdout", "one")]
    more.set()
    assert await anext(found) == [("t", "stdout", "two")]
    with pytest.raises(StopAsyncIteration):
        await anext(found)


async def test_a_failure_of_the_reader_is_told() -> None:
    async def broken() -> AsyncIterator[Piece]:
        yield out("t one\n")
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await collected(broken())


@pytest.mark.parametrize("length", [10, 60_000])
async def test_what_waits_for_a_slow_browser_has_a_limit_in_lines_and_in_letters(length: int) -> None:
    given = 0

    async def endless() -> AsyncIterator[Piece]:
        nonlocal given
        while True:
            given += 1
            yield out(f"t {'x' * length}\n")

    found = batches(endless(), "", Tasks())
    sizes = []
    for _ in range(20):
        batch = await anext(found)
        sizes.append(sum(len(text) for _, _, text in batch))
        assert given * length < sum(sizes) + (3 << 20) and given < 70_000
    assert max(sizes) < 400_000
    assert isinstance(found, AsyncGenerator)
    await found.aclose()


async def test_who_leaves_ends_the_reading() -> None:
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[Piece]:
        try:
            while True:
                yield out("t line\n")
        finally:
            closed.set()

    tasks = Tasks()
    found = batches(endless(), "", tasks, most_waiting=10)
    await anext(found)
    assert isinstance(found, AsyncGenerator)
    await found.aclose()
    assert tasks.count == 0
