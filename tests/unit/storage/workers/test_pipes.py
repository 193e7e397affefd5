"""Pipes that the daemon does not wait for."""

import asyncio
import contextlib
import os
import threading
from typing import Any

import pytest

from husk.storage.workers import pipes
from husk.storage.workers.answers import Answer, FoundFile, Looked
from husk.storage.workers.messages import decode_answer, encode
from husk.storage.workers.pipes import AnswerPipe, keep_end, make_pipe, read_some, write_all


@pytest.fixture
def ends():
    with contextlib.ExitStack() as stack:
        reader, writer = make_pipe(stack, 1 << 16)
        kept = keep_end(reader), keep_end(writer)
    yield kept
    for end in kept:
        with contextlib.suppress(OSError):
            os.close(end)


async def test_more_than_a_pipe_holds_goes_through(ends):
    reader, writer = ends
    data = os.urandom(1 << 20)

    async def read():
        got = b""
        while len(got) < len(data):
            got += await read_some(reader)
        return got

    got, _ = await asyncio.gather(read(), write_all(writer, data))
    assert got == data


async def test_nobody_who_reads(ends):
    reader, writer = ends
    os.close(reader)
    with pytest.raises(BrokenPipeError):
        await write_all(writer, b"x")


async def test_the_end(ends):
    reader, writer = ends
    os.close(writer)
    assert await read_some(reader) == b""


async def test_a_long_answer_is_decoded_in_a_thread(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """A list of 20,000 files held everybody else up for most of a second."""
    decode = decode_answer
    threads: list[int] = []

    def watched(line: bytes) -> Answer:
        threads.append(threading.get_ident())
        return decode(line)

    monkeypatch.setattr(pipes, "decode_answer", watched)
    few, many = (Looked([FoundFile("name", 0o644, 0, 0, 0, 0)] * count) for count in (1, 2000))
    (tmp_path / "said").write_bytes(encode(few) + encode(many) + encode(few)[:10])
    pipe = AnswerPipe(os.open(tmp_path / "said", os.O_RDONLY))
    assert await pipe.next() == few
    assert await pipe.next() == many
    assert await pipe.next() is None, "it was cut"
    assert threads[0] == threading.get_ident() != threads[1]
    pipe.close()
