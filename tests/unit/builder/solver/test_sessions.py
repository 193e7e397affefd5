"""The sessions that are open, by id."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from husk.aio.tasks import Tasks
from husk.builder.solver.sessions import Sessions, SessionToken
from husk.errors import Conflict, Unavailable


def client(id: str) -> Any:
    return SimpleNamespace(id=id)


async def test_a_session_is_found_by_its_id():
    sessions = Sessions()
    await sessions.add(one := client("one"))
    assert await sessions.get("one") is one


async def test_a_prefix_of_an_id_names_a_directory_and_no_session():
    sessions = Sessions()
    await sessions.add(one := client("one"))
    assert await sessions.get("dockerfile:one") is one


async def test_who_asks_before_a_session_is_there_waits_for_it():
    sessions = Sessions()
    waiting = Tasks().spawn(sessions.get("one"), "get", awaited=True)
    await asyncio.sleep(0)
    await sessions.add(one := client("one"))
    assert await waiting is one


async def test_a_session_that_does_not_come_is_unavailable():
    with pytest.raises(Unavailable, match="no active session for one"):
        await Sessions().get("one", patience=0)


async def test_an_id_is_taken_once():
    sessions = Sessions()
    await sessions.add(client("one"))
    with pytest.raises(Conflict, match="session one already exists"):
        await sessions.add(client("one"))


async def test_a_session_that_left_is_gone_and_may_leave_twice():
    sessions = Sessions()
    await sessions.add(one := client("one"))
    sessions.remove(one)
    await sessions.add(other := client("one"))
    sessions.remove(one)
    assert await sessions.get("one") is other


def test_a_token_is_not_shown():
    assert "hunter2" not in repr(SessionToken("hunter2"))
