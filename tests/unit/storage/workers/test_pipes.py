"""Pipes that the daemon does not wait for."""

import asyncio
import contextlib
import os

import pytest

from husk.storage.workers.pipes import keep_end, make_pipe, read_some, write_all


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
