"""The streams of a container without a monitor: the test has the other ends of its pipes."""

import asyncio
import contextlib
import os
from collections.abc import Iterator

import pytest

from husk.runtime.supervise.pipes import PipeConsole


class Ends:
    def __init__(self) -> None:
        self.stdin, ours_in = os.pipe()
        ours_out, self.stdout = os.pipe()
        ours_err, self.stderr = os.pipe()
        self.ours = (ours_in, ours_out, ours_err)
        self.open = {self.stdin, self.stdout, self.stderr}

    def close(self, *ends: int) -> None:
        for end in ends or tuple(self.open):
            self.open.discard(end)
            os.close(end)


@pytest.fixture
def ends() -> Iterator[Ends]:
    ends = Ends()
    yield ends
    ends.close(*ends.open)
    for fd in ends.ours:
        with pytest.raises(OSError):  # closed by the console
            os.fstat(fd)


def console_of(ends: Ends, closes_stdin: bool = True) -> PipeConsole:
    console = PipeConsole(*ends.ours, closes_stdin)
    console.take()
    return console


async def test_output_comes_with_its_stream_until_both_have_ended(ends: Ends) -> None:
    console = console_of(ends)
    os.write(ends.stdout, b"out")
    assert await console.read() == (1, b"out")
    reading = asyncio.get_running_loop().create_task(console.read())
    await asyncio.sleep(0)
    os.write(ends.stderr, b"err")
    assert await reading == (2, b"err")
    ends.close(ends.stdout, ends.stderr)
    assert await console.read() is None
    console.finish()


async def test_who_else_holds_a_pipe_is_not_waited_for(ends: Ends) -> None:
    console = console_of(ends)
    os.write(ends.stdout, b"last words")
    console.finish()
    assert [await console.read() for _ in range(2)] == [(1, b"last words"), None]


async def test_who_waits_for_output_hears_of_the_end(ends: Ends) -> None:
    console = console_of(ends)
    reading = asyncio.get_running_loop().create_task(console.read())
    await asyncio.sleep(0)
    console.finish()
    assert await reading is None


async def test_input_arrives_whole_and_ends(ends: Ends) -> None:
    console = console_of(ends)
    sent = bytes(range(256)) * 1024
    writing = asyncio.get_running_loop().create_task(console.write(sent))
    received = b""
    os.set_blocking(ends.stdin, False)
    async with asyncio.timeout(10):
        while len(received) < len(sent):
            await asyncio.sleep(0)
            with contextlib.suppress(BlockingIOError):
                received += os.read(ends.stdin, 1 << 16)
        await writing
    console.close_stdin()
    assert (received, os.read(ends.stdin, 1)) == (sent, b"")
    console.finish()
    console.close()


async def test_input_that_is_to_stay_open_does(ends: Ends) -> None:
    console = console_of(ends, closes_stdin=False)
    console.close_stdin()
    os.set_blocking(ends.stdin, False)
    with pytest.raises(BlockingIOError):
        os.read(ends.stdin, 1)
    console.finish()
    console.close()


async def test_nobody_writes_to_one_that_has_ended(ends: Ends) -> None:
    console = console_of(ends)
    writing = asyncio.get_running_loop().create_task(console.write(bytes(1 << 20)))
    await asyncio.sleep(0.01)
    console.finish()
    async with asyncio.timeout(5):
        await writing
    await console.write(b"more")
    console.close()


async def test_output_that_nobody_wants_is_thrown_away_until_somebody_does(ends: Ends) -> None:
    console = console_of(ends)
    console.close()
    os.set_blocking(ends.stdout, False)
    written = 0
    async with asyncio.timeout(5):
        while written < 1 << 20:  # a pipe holds less
            try:
                written += os.write(ends.stdout, bytes(1 << 14))
            except BlockingIOError:
                await asyncio.sleep(0)
        console.take()
        while (piece := await console.read()) is not None:
            os.write(ends.stderr, b"heard")
            if piece == (2, b"heard"):
                break
    console.finish()
    console.close()


async def test_who_leaves_while_waiting_leaves_the_rest_to_be_thrown_away(ends: Ends) -> None:
    console = console_of(ends)
    reading = asyncio.get_running_loop().create_task(console.read())
    await asyncio.sleep(0)
    reading.cancel()
    console.close()
    with pytest.raises(asyncio.CancelledError):
        await reading
    os.write(ends.stdout, b"x")
    ends.close(ends.stdout, ends.stderr)
    await asyncio.sleep(0.01)
    console.finish()
