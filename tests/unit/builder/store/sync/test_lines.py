"""A worker's pipes: it waits for what comes, never for what goes."""

import os

import pytest

from husk.builder.store.sync.lines import ClientLines
from husk.builder.store.sync.packets import SyncError
from husk.storage.workers.answers import Failed, Invalid


@pytest.fixture
def pipes():
    source, writer = os.pipe()
    reader, outlet = os.pipe()
    os.set_blocking(reader, False)
    yield ClientLines(source, outlet), writer, reader
    for end in (source, writer, reader, outlet):
        os.close(end)


def test_what_comes_is_read_and_what_is_written_goes(pipes):
    lines, writer, reader = pipes
    os.write(writer, b"in")
    assert lines.ready()
    output = bytearray(b"out")
    lines.write(output)
    assert (lines.read(), os.read(reader, 10), bytes(output)) == (b"in", b"out", b"")
    assert not lines.ready()


def test_more_than_the_pipe_holds_waits_without_being_waited_for(pipes):
    lines, writer, reader = pipes
    lines.write(bytearray(b"x" * 1_000_000))
    assert lines.behind
    os.write(writer, b"in")
    assert lines.read() == b"in"
    got = len(os.read(reader, 1 << 20))
    while lines.behind:
        lines.wait()
        got += len(os.read(reader, 1 << 20))
    assert got == 1_000_000


def test_nobody_who_reads_is_no_error(pipes):
    lines, _, _ = pipes
    source, gone = os.pipe()
    os.close(source)
    lines = ClientLines(0, gone)
    lines.write(bytearray(b"x"))
    assert not lines.behind
    os.close(gone)


def test_a_client_is_told_of_its_own_mistakes_alone(pipes):
    lines, _, reader = pipes
    assert lines.tell(OSError(28, "No space left on device", "/a")) == Failed("no space left on device: /a")
    with pytest.raises(BlockingIOError):
        os.read(reader, 10)
    assert lines.tell(SyncError("wrong")) == Invalid("wrong")
    assert b"wrong" in os.read(reader, 100)
