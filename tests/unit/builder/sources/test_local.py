"""Directories of clients as sources, with doubles of the client and of what keeps its files."""

import asyncio
import contextlib
from typing import Any

import pytest

from husk.builder.graph.operations import Source
from husk.builder.solver.sessions import LocalDirectory, Sessions
from husk.builder.sources.local import LocalSource, directory_of, name_of
from husk.errors import InvalidParameter, NotImplementedYet, Unavailable


class Client:
    def __init__(self, id, shared_key="key"):
        self.id = id
        self.shared_key = shared_key
        self.asked = []

    @contextlib.asynccontextmanager
    async def sync(self, directory):
        self.asked.append(directory)
        yield self


class Mirrors:
    def __init__(self):
        self.calls = []

    async def sync(self, key, channel, take, progress=None, ahead=None, anew=False):
        self.ahead = ahead
        self.anew = anew
        self.calls.append((key, channel.id, await take("diff:0")))
        progress(100)
        progress(1 << 20)
        return "diff:1"


class Watcher:
    def __init__(self, session=None):
        self.session = session
        self.statuses = []

    def log(self, data, *, stderr=False):
        raise AssertionError("nothing is said")

    def status(self, status):
        self.statuses.append(status)


async def yes(element):
    return True


async def keep(elements):
    raise AssertionError("nothing is let go of")


def local(**attributes):
    return Source("local://context", {f"local.{name}": value for name, value in attributes.items()})


async def fetch(source, session, sessions=None):
    mirrors = Mirrors()
    watcher = Watcher(session)
    kind = LocalSource(mirrors, sessions or Sessions(), yes, keep)
    return await kind.fetch(source, None, watcher), mirrors, watcher


async def test_a_directory_is_asked_of_the_client_who_waits():
    client = Client("one")
    fetched, mirrors, watcher = await fetch(local(sharedkeyhint="hint", excludepatterns='["a", "!b"]'), client)
    assert (fetched.stack, fetched.made, fetched.type) == ("diff:1", ["diff:1"], "source.local")
    assert fetched.description == "local source for context"
    assert client.asked == [LocalDirectory(name="context", include=[], exclude=["a", "!b"], follow=[])]
    assert mirrors.calls == [("context:hint:key", "one", True)]
    assert not mirrors.anew
    told = [(status.current, status.done) for status in watcher.statuses]
    assert told == [(0, False), (1 << 20, False), (1 << 20, True)]


async def test_another_session_may_be_named():
    sessions = Sessions()
    other: Any = Client("other")
    await sessions.add(other)
    _, mirrors, _ = await fetch(local(session="other"), Client("one"), sessions=sessions)
    assert mirrors.calls[0][1] == "other"


async def test_a_session_that_left_is_replaced_by_the_client_who_waits():
    class Empty(Sessions):
        async def get(self, id, *, patience=0.0):
            raise Unavailable("gone")

    sessions = Empty()
    _, mirrors, _ = await fetch(local(session="other"), Client("one"), sessions=sessions)
    assert mirrors.calls[0][1] == "one"
    with pytest.raises(Unavailable):
        await fetch(local(session="other"), None, sessions=sessions)


async def test_without_a_session_there_are_no_files():
    with pytest.raises(InvalidParameter, match="without session"):
        await fetch(local(), None)


async def test_without_a_differ_everything_is_sent():
    _, mirrors, _ = await fetch(local(differ="none"), Client("one"))
    assert mirrors.anew
    # And yet what was there before may be taken: it is replaced.
    assert mirrors.calls == [("context::key", "one", True)]


async def test_metadata_alone_is_not_built():
    with pytest.raises(NotImplementedYet):
        await fetch(local(metadatatransfer="true"), Client("one"))


async def test_the_key_is_that_of_a_session_and_of_what_is_wanted():
    kind = LocalSource(Mirrors(), Sessions(), yes, keep)
    one, other = Watcher(Client("one")), Watcher(Client("other"))
    key = await kind.key(local(), None, one)
    assert key.startswith("session:context:")
    assert key == await kind.key(local(), None, one)
    assert key != await kind.key(local(), None, other)
    assert key != await kind.key(local(followpaths='["x"]'), None, one)


def test_a_prefix_of_a_session_is_part_of_the_name():
    assert name_of(local(session="dockerfile:abc")) == "dockerfile-context"
    assert name_of(local(session="abc")) == "context"


def test_patterns_that_are_none():
    assert directory_of(local(includepattern="null")).include == []
    with pytest.raises(InvalidParameter, match=r"local\.includepattern"):
        directory_of(local(includepattern="{"))


async def test_what_is_packed_while_files_come_is_told_to_whoever_keeps_them():
    mirrors: Any = Mirrors()
    ahead: Any = object()
    kind = LocalSource(mirrors, Sessions(), yes, keep)
    await kind.fetch_ahead(local(), Watcher(Client("one")), ahead)
    assert mirrors.ahead is ahead


async def test_what_has_come_for_a_build_that_went_meanwhile_is_let_go_of():
    class Leaving(Client):
        @contextlib.asynccontextmanager
        async def sync(self, directory):
            yield self
            raise asyncio.CancelledError

    released = []

    async def release(elements):
        released.extend(elements)

    kind = LocalSource(Mirrors(), Sessions(), yes, release)
    with pytest.raises(asyncio.CancelledError):
        await kind.fetch(local(), None, Watcher(Leaving("one")))
    assert released == ["diff:1"]
