import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from husk.aio.loop_thread import ThreadBound
from husk.errors import Unavailable


class Room:
    """Something to be entered, which knows what happened to it."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.told: list[str] = []
        self.entering = threading.Event()
        self.may_enter = threading.Event()
        self.may_enter.set()
        self.failure = failure

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        self.entering.set()
        await asyncio.to_thread(self.may_enter.wait)
        self.told.append(f"entered in {threading.current_thread().name}")
        if self.failure is not None:
            raise self.failure
        yield "value"
        self.told.append("left")


def kept(room: Room) -> ThreadBound[str]:
    kept = ThreadBound(room.open(), "room", lambda: room.told.append("prepared"))
    kept.start()
    return kept


async def name_of_thread() -> str:
    return threading.current_thread().name


def test_something_stays_entered_until_it_is_left():
    room = Room()
    here = kept(room)
    assert here.opened.result() == "value"
    assert here.submit(name_of_thread()).result() == "room"
    assert room.told == ["prepared", "entered in room"]
    here.close()
    assert room.told[-1] == "left"
    assert not any(thread.name.startswith(("room", "short")) for thread in threading.enumerate())


def test_what_is_left_can_be_left_again_but_does_nothing_more():
    here = kept(Room())
    here.close()
    here.close()
    with pytest.raises(Unavailable, match="closed"):
        here.submit(name_of_thread())


async def test_what_cannot_be_entered_says_why():
    here = kept(Room(failure=ValueError("locked")))
    with pytest.raises(ValueError, match="locked"):
        await here.entered()
    await here.left()


async def test_who_is_cancelled_while_it_is_entered_leaves_nothing():
    room = Room()
    room.may_enter.clear()
    here = kept(room)
    entering = asyncio.get_running_loop().create_task(here.entered())
    await asyncio.to_thread(room.entering.wait)
    entering.cancel()
    room.may_enter.set()
    with pytest.raises(asyncio.CancelledError):
        await entering
    assert room.told[-1] == "left"
    assert here.ended.done()


async def test_leaving_is_not_cut_off():
    room = Room()
    here = kept(room)
    await here.entered()
    leaving = asyncio.get_running_loop().create_task(here.left())
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert room.told[-1] == "left"


def test_a_process_that_was_forked_waits_for_no_thread_of_its_parent(monkeypatch: pytest.MonkeyPatch):
    room = Room()
    here = kept(room)
    here.opened.result()
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: -1)
        with pytest.raises(Unavailable, match="before this process was forked"):
            here.submit(name_of_thread())
        here.close()
        here.leave()
    assert room.told[-1] == "entered in room", "what its parent has open stays open"
    assert here.submit(name_of_thread()).result() == "room"
    here.close()
