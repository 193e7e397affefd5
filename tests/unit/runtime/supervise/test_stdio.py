"""Streams between us and a process."""

import asyncio
import os
import socket
import sys

import pytest

from husk.aio.tasks import Tasks
from husk.kernel import process
from husk.runtime.supervise.stdio import Pipes, StreamEnd, Terminal

# The signal is blocked before anybody is told to send it: it cannot be lost.
TELLS_ITS_SIZE = """\
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])
os.write(1, b"ready\\n")
signal.sigwait([signal.SIGWINCH])
size = os.get_terminal_size()
os.write(1, b"%d %d %s" % (size.columns, size.lines, os.read(0, 100)))
"""


async def test_pipes_to_a_process_and_back() -> None:
    with Pipes() as streams:
        argv = ["/bin/sh", "-c", "cat; echo oh >&2"]
        child = process.spawn(argv, stdin=streams.stdin, stdout=streams.stdout, stderr=streams.stderr)
        streams.begin()
        await streams.opened()
        streams.resize(1, 1)
        await streams.input.write(b"hello")
        assert await streams.output.read() == b"hello"
        streams.input.close()
        assert await process.wait(child) == 0
        assert await streams.output.read() == b""
        assert await streams.errors.read() == b"oh\n"
        with pytest.raises(BrokenPipeError):
            await streams.input.write(b"x")
    assert streams.output.closed


async def test_who_writes_more_than_is_read_waits() -> None:
    tasks = Tasks()
    reader, writer = map(StreamEnd, os.pipe())
    data = os.urandom(300_000)
    writing = tasks.spawn(writer.write(data), "write", awaited=True)
    received = b""
    while len(received) < len(data):
        assert not (writing.done() and not received)
        received += await reader.read()
    await writing
    assert received == data
    reader.close()
    with pytest.raises(BrokenPipeError):
        await writer.write(b"x")
    writer.close()
    writer.close()


async def test_a_terminal_comes_by_a_socket() -> None:
    master, slave = os.openpty()
    with Terminal() as terminal:
        terminal.resize(5, 6)
        opened = Tasks().spawn(terminal.opened(), "opened", awaited=True)
        with socket.socket(socket.AF_UNIX) as runtime:
            await asyncio.to_thread(runtime.connect, terminal.console_socket)
            socket.send_fds(runtime, [b"/dev/ptmx"], [master])
            await opened
        os.close(master)
        assert os.get_terminal_size(slave) == (6, 5)
        terminal.resize(7, 8)
        assert os.get_terminal_size(slave) == (8, 7)
        os.write(slave, b"hi")
        assert await terminal.output.read() == b"hi"
        await terminal.input.write(b"x\n")
        assert os.read(slave, 10) == b"x\n"
        os.close(slave)
        while await terminal.output.read():
            pass
    assert terminal.input.closed
    assert not os.path.exists(terminal.console_socket)


async def test_a_terminal_of_ours_for_a_runtime_that_copies() -> None:
    with Terminal() as terminal:
        terminal.resize(5, 6)
        opened = Tasks().spawn(terminal.opened(), "opened", awaited=True)
        terminal.relay()
        await opened
        child = process.spawn(
            [sys.executable, "-c", TELLS_ITS_SIZE],
            stdin=terminal.stdin,
            stdout=terminal.stdout,
            stderr=terminal.stderr,
        )
        terminal.begin()
        terminal.relayed_by(child.pid)
        assert await terminal.output.read() == b"ready\n", "as it was written: nothing is made of it"
        terminal.resize(7, 8)
        await terminal.input.write(b"hello\n")
        assert await terminal.output.read() == b"8 7 hello\n"
        assert await process.wait(child) == 0
        terminal.relayed_by(0)
        assert await terminal.output.read() == b""
        terminal.resize(9, 9)


async def test_a_runtime_that_sends_no_terminal() -> None:
    with Terminal() as terminal:
        opened = Tasks().spawn(terminal.opened(), "opened", awaited=True)
        with socket.socket(socket.AF_UNIX) as runtime:
            await asyncio.to_thread(runtime.connect, terminal.console_socket)
        with pytest.raises(ConnectionError, match="no terminal"):
            await opened
