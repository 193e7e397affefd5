"""Attachments: who listens hears everything, who leaves holds nobody up."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest

from husk.aio.tasks import Tasks
from husk.engine.containers import attach
from husk.engine.containers.attach import BUFFER, Attachment, Ending, NotReading, Switchboard
from husk.engine.logs.records import STDERR, STDOUT, LogRecord
from husk.runtime.supervise.console import Console


class FakeConsole:
    """A monitor's connection that says what the test puts into it."""

    def __init__(self) -> None:
        self.output: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue()
        self.input = b""
        self.stdin_closed = False
        self.closed = asyncio.Event()

    async def read(self) -> tuple[int, bytes] | None:
        return await self.output.get()

    async def write(self, data: bytes) -> None:
        self.input += data

    def close_stdin(self) -> None:
        self.stdin_closed = True

    def close(self) -> None:
        self.closed.set()

    def say(self, *chunks: tuple[int, bytes] | None) -> None:
        for chunk in chunks:
            self.output.put_nowait(chunk)


class Room:
    """A switchboard, its console, and ways in."""

    def __init__(self) -> None:
        self.tasks = Tasks()
        self.switchboard = Switchboard(self.tasks)
        self.console = FakeConsole()
        self.detached = 0

    def attach(
        self,
        *streams: int,
        stdin: bool = False,
        live: bool = True,
        history: AsyncIterator[list[LogRecord]] | None = None,
        ending: Ending | None = None,
    ) -> Attachment:
        attachment = Attachment(
            tty=False,
            stdin=stdin,
            streams=frozenset(streams or (STDOUT, STDERR)),
            history=history,
            live=live,
            on_close=self.switchboard.leave,
            on_detach=self._detach,
            ending=ending,
        )
        self.switchboard.add(attachment)
        return attachment

    def connect(self, console: FakeConsole | None = None) -> None:
        self.switchboard.connect(cast(Console, console or self.console))

    def _detach(self) -> None:
        self.detached += 1


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    room = Room()
    yield room
    await room.tasks.cancel_all()


async def heard(attachment: Attachment) -> list[tuple[int, bytes]]:
    return [chunk async for chunk in attachment.output()]


async def test_everyone_hears_the_streams_they_asked_for(room: Room) -> None:
    both, errors = room.attach(), room.attach(STDERR)
    room.connect()
    room.console.say((STDOUT, b"out"), (STDERR, b"err"), None)
    room.switchboard.finish()
    assert await heard(both) == [(STDOUT, b"out"), (STDERR, b"err")]
    assert await heard(errors) == [(STDERR, b"err")]


async def test_the_end_of_the_output_ends_the_connection(room: Room) -> None:
    attachment = room.attach()
    room.connect()
    room.console.say(None)
    room.switchboard.finish()
    assert await heard(attachment) == []
    await room.console.closed.wait()
    assert not room.switchboard.connected


async def test_history_comes_before_what_happens_now(room: Room) -> None:
    async def history() -> AsyncIterator[list[LogRecord]]:
        yield [LogRecord(STDOUT, b"", b"old", False)]

    attachment = room.attach(history=history())
    room.connect()
    room.console.say((STDOUT, b"new"), None)
    room.switchboard.finish()
    assert await heard(attachment) == [(STDOUT, b"old"), (STDOUT, b"new")]


async def test_without_a_stream_there_is_only_history(room: Room) -> None:
    assert await heard(room.attach(live=False)) == []


async def test_input_waits_for_the_start(room: Room) -> None:
    attachment = room.attach(stdin=True)
    writing = asyncio.gather(attachment.write(b"hello"))
    await asyncio.sleep(0)
    assert room.console.input == b""
    room.connect()
    await writing
    await attachment.close_stdin()
    assert (room.console.input, room.console.stdin_closed) == (b"hello", True)


async def test_who_asked_for_no_input_sends_none(room: Room) -> None:
    attachment = room.attach()
    room.connect()
    await attachment.write(b"x")
    await attachment.close_stdin()
    assert (room.console.input, room.console.stdin_closed) == (b"", False)


async def test_who_attaches_later_reaches_the_console_too(room: Room) -> None:
    room.attach()
    room.connect()
    late = room.attach(stdin=True)
    await late.write(b"x")
    assert room.console.input == b"x"


async def test_a_start_that_fails_lets_everyone_go(room: Room) -> None:
    attachment = room.attach(stdin=True)
    writing = asyncio.gather(attachment.write(b"x"))
    room.switchboard.finish()
    assert await heard(attachment) == []
    await writing


async def test_when_the_last_one_leaves_the_connection_is_closed(room: Room) -> None:
    first, second = room.attach(), room.attach()
    room.connect()
    await first.close()
    assert room.switchboard.connected
    await second.close()
    assert not room.switchboard.connected
    assert not room.switchboard
    await room.console.closed.wait()


async def test_who_comes_right_after_the_last_one_left_gets_a_connection_that_lives(room: Room) -> None:
    first = room.attach()
    room.connect()
    await asyncio.sleep(0)
    await first.close()
    second, console = room.attach(), FakeConsole()
    assert not room.switchboard.connected
    room.connect(console)
    await room.console.closed.wait()
    console.say((STDOUT, b"still here"), None)
    room.switchboard.finish()
    assert await heard(second) == [(STDOUT, b"still here")]


async def test_a_client_that_leaves_frees_those_who_waited_for_it(room: Room) -> None:
    slow, quick = room.attach(STDOUT), room.attach(STDERR)
    room.connect()
    room.console.say(*[(STDOUT, bytes(BUFFER))] * 2, (STDERR, b"y"), None)
    room.switchboard.finish()
    hearing = asyncio.gather(heard(quick))
    while slow._size < BUFFER:
        await asyncio.sleep(0)
    await slow.close()
    assert list(await hearing) == [[(STDERR, b"y")]]


async def test_detaching_is_told(room: Room) -> None:
    room.attach().detached()
    assert room.detached == 1


async def test_a_slow_client_misses_nothing(room: Room) -> None:
    slow = room.attach()
    room.connect()
    chunks = [(STDOUT, bytes([n]) * (BUFFER // 2)) for n in range(8)]
    room.console.say(*chunks, None)
    room.switchboard.finish()
    got = []
    async for chunk in slow.output():
        got.append(chunk)
        for _ in range(10):
            await asyncio.sleep(0)
        assert slow._size <= BUFFER + BUFFER // 2
    assert got == chunks


async def test_who_does_not_read_for_long_is_dropped_and_the_others_hear_on(room: Room) -> None:
    asleep, awake = room.attach(STDOUT, ending=Ending(patience=0.3)), room.attach(STDERR)
    room.connect()
    room.console.say(*[(STDOUT, bytes(BUFFER))] * 2, (STDERR, b"y"), None)
    room.switchboard.finish()
    assert await heard(awake) == [(STDERR, b"y")]
    await asleep.dropped()
    with pytest.raises(NotReading):
        await heard(asleep)
    await room.console.closed.wait()


async def test_the_end_waits_for_nobody_and_what_was_left_is_heard_later(room: Room) -> None:
    asleep = room.attach(ending=Ending(told=lambda: True))
    room.connect()
    room.console.say((STDOUT, bytes(BUFFER)), (STDOUT, b"the last words"), None)
    room.switchboard.finish()
    await room.console.closed.wait()
    assert [len(data) for _, data in await heard(asleep)] == [BUFFER, len(b"the last words")]


async def test_who_holds_up_an_end_with_too_much_is_dropped_soon(room: Room) -> None:
    asleep = room.attach(ending=Ending(told=lambda: True, patience=10_000.0, last_patience=0.1))
    room.connect()
    room.console.say(*[(STDOUT, bytes(BUFFER))] * 3, None)
    room.switchboard.finish()
    await asleep.dropped()
    await room.console.closed.wait()


async def test_telling_the_end_waits_for_no_client(room: Room) -> None:
    """The teller holds the container's lock."""
    asleep = room.attach()
    await asleep.deliver((STDOUT, bytes(BUFFER)))
    room.switchboard.finish()
    assert len(await heard(asleep)) == 1


async def test_the_end_of_the_output_is_heard_when_the_end_of_the_run_is_told(room: Room) -> None:
    """A client that reads to the end looks at the container next."""
    early = room.attach()
    room.connect()
    room.console.say((STDOUT, b"x"), None)
    await room.console.closed.wait()
    late = room.attach()
    hearing = asyncio.gather(heard(early), heard(late))
    while early._output:
        await asyncio.sleep(0)
    assert not hearing.done()
    room.switchboard.finish()
    assert list(await hearing) == [[(STDOUT, b"x")], []]


async def test_who_comes_for_the_next_run_hears_nothing_of_the_last(room: Room) -> None:
    first = room.attach()
    room.connect()
    room.switchboard.finish()  # the process has ended, and not all of its output has come
    later = room.attach()
    room.console.say((STDOUT, b"old"), None)
    assert await heard(first) == [(STDOUT, b"old")]
    again = FakeConsole()
    room.connect(again)
    again.say((STDOUT, b"new"), None)
    room.switchboard.finish()
    assert await heard(later) == [(STDOUT, b"new")]


async def test_many_who_do_not_read_delay_an_end_as_little_as_one(room: Room) -> None:
    now = 1000.0
    clock = Ending(told=lambda: True, ended=lambda: True, clock=lambda: now)
    crowd = [room.attach(ending=clock) for _ in range(50)]
    room.connect()
    room.console.say(*[(STDOUT, bytes(BUFFER))] * 4, None)
    room.switchboard.finish()
    while not any(len(one._output) == 2 for one in crowd):
        await asyncio.sleep(0)
    now += attach.LAST_PATIENCE  # once, for all of them
    await room.console.closed.wait()
    for one in crowd:
        await one.dropped()


def test_progress_puts_the_end_off_only_for_so_long() -> None:
    now, ended = 1000.0, False
    clock = Ending(told=lambda: ended or now > 1005, ended=lambda: ended, clock=lambda: now)
    assert not clock.look() and clock.deadline(now) == now + attach.PATIENCE
    now = 1010
    assert clock.look() and clock.deadline(900) == now + attach.LAST_PATIENCE
    ended, now = True, 1020
    assert clock.look() and clock.deadline(1023.5) == 1023.5 + attach.LAST_PATIENCE
    assert clock.deadline(2000) == 1020 + attach.LONGEST
    clock.begin()
    now = 5000
    assert clock.look() and clock.deadline(0) == now + attach.LAST_PATIENCE
