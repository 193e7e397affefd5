"""A layer that was packed while its files came is the one that packing its files gives, to the byte."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from husk.builder.store.ahead import AheadTar
from husk.builder.store.diff_packing import pack
from husk.builder.store.file_actions import Copy, FileAction
from husk.builder.store.sync.exchange import exchange
from husk.builder.store.sync.mirrors import _MUCH, Mirrors
from husk.builder.store.workers.jobs import SendJob
from tests.integration.builder.store.sync.test_workers import channel
from tests.support.layers import Store
from tests.support.trees import Forest, copy
from tests.support.waiting import until_async


class Contexts:
    """A directory of a client, and copies of it."""

    def __init__(self, store: Store, top: Path) -> None:
        self.forest = Forest(store, top / "shown")
        self.store = store
        self.path = top / "context"
        (self.path / "d").mkdir(parents=True)
        (self.path / "d/large").write_bytes(os.urandom(9 << 20))
        (self.path / "d/script").write_text("#!/bin/sh\n")
        (self.path / "d/script").chmod(0o755)
        (self.path / "link").symlink_to("d/large")
        self.mirrors = Mirrors.open(top / "mirrors", store.diffs, store.nursery)

    def ahead(self, action: Copy, below: str | None) -> AheadTar:
        async def known() -> str | None:
            return below

        return self.forest.trees.ahead(FileAction(action=action, input=0, second_input=1, output=0), known)

    async def sync(self, ahead: AheadTar) -> str:
        theirs, ours = channel()
        job = SendJob(root=str(self.path), prefix="", mtime=None)
        slow: Any = Slow(theirs, ahead)
        _, element = await asyncio.gather(
            exchange(self.store.nursery, job, slow), self.mirrors.sync("key", ours, _nobody_has_it, ahead=ahead)
        )
        return element

    async def copied(self, action: Copy, below: str, source: str, ahead: AheadTar) -> str:
        step = FileAction(action=action, input=0, second_input=1, output=0)
        [stack] = await self.forest.trees.apply([step], [below, source], layered=True, ahead=ahead)
        return stack

    async def packed(self, stack: str) -> str:
        """The digest of what packing the topmost files gives."""
        upper = Path(self.store.diffs.lower(stack)[0])
        with self.store.diffs.blob_file(True) as blob_file:
            [packing] = await pack(self.store.nursery, [(upper, Path(blob_file))], "")
        return packing.digest

    def half_written(self) -> list[str]:
        return os.listdir(self.store.root / "blobs/ingest")


class Slow:
    """A client's end of a channel that sends the last part only when the worker may pack."""

    def __init__(self, end: Any, ahead: AheadTar) -> None:
        self._end = end
        self._ahead = ahead
        self.sent = 0

    async def send(self, data: bytes) -> None:
        if self.sent > _MUCH:
            await until_async(self._known, "what the tar begins with is known")
        self.sent += len(data)
        await self._end.send(data)

    def _known(self) -> bool:
        return self._ahead._file is not None and self._ahead._file.stat().st_size > 0

    async def receive(self) -> bytes:
        received: bytes = await self._end.receive()
        return received

    async def end(self) -> None:
        await self._end.end()


async def _nobody_has_it(element: str) -> bool:
    return False


@pytest.fixture
async def contexts(store: Store, tmp_path: Path) -> AsyncIterator[Contexts]:
    yield Contexts(store, tmp_path)


@pytest.mark.parametrize("destination", ["/", "/new/", "/there/", "/there/deep/", "/linked/"])
async def test_the_same_bytes(contexts: Contexts, destination: str):
    def fill(root: Path) -> None:
        (root / "there/deep/d").mkdir(parents=True)
        (root / "there/deep/d/large").write_text("old")
        (root / "linked").symlink_to("there")
        os.chown(root / "there", 5, 6)

    below = await contexts.forest.plant(fill)
    action = copy("/", destination)
    ahead = contexts.ahead(action, below)
    element = await contexts.sync(ahead)
    assert ahead._file is not None
    file = ahead._file.stat().st_ino
    stack = await contexts.copied(action, below, element, ahead)
    [blob] = contexts.store.blobs.all()
    assert blob == await contexts.packed(stack)
    assert contexts.store.blobs.path(blob).stat().st_ino == file
    await ahead.close()
    assert contexts.half_written() == []
    assert contexts.store.blobs.has(blob)


async def test_what_turns_out_otherwise_is_packed_as_usual(contexts: Contexts):
    """The layers below have another look than was foreseen."""
    action = copy("/", "/there/")
    ahead = contexts.ahead(action, "")
    element = await contexts.sync(ahead)
    below = await contexts.forest.plant(lambda root: (root / "there").mkdir(mode=0o700))
    stack = await contexts.copied(action, below, element, ahead)
    assert contexts.store.blobs.all() == {await contexts.packed(stack)}
    assert contexts.half_written() == []


async def test_a_base_that_is_not_here(contexts: Contexts):
    action = copy("/", "/there/")
    ahead = contexts.ahead(action, None)
    theirs, ours = channel()
    job = SendJob(root=str(contexts.path), prefix="", mtime=None)
    _, element = await asyncio.gather(
        exchange(contexts.store.nursery, job, theirs),
        contexts.mirrors.sync("key", ours, _nobody_has_it, ahead=ahead),
    )
    stack = await contexts.copied(action, "", element, ahead)
    assert contexts.store.blobs.all() == {await contexts.packed(stack)}
    await ahead.close()
    assert contexts.half_written() == []


async def test_what_is_not_wanted_goes(contexts: Contexts):
    """As where the cache has the result."""
    ahead = contexts.ahead(copy("/", "/new/"), "")
    element = await contexts.sync(ahead)
    await ahead.close()
    assert contexts.half_written() == []
    await contexts.store.diffs.remove([element])
    await contexts.store.emptied()
    assert contexts.store.nothing_left()


class Stuck(Slow):
    """One that stops half-way."""

    def __init__(self, end: Any, ahead: AheadTar) -> None:
        super().__init__(end, ahead)
        self.stopped = asyncio.Event()

    async def send(self, data: bytes) -> None:
        if self.sent > _MUCH + (1 << 20):
            self.stopped.set()
            await asyncio.Event().wait()
        await super().send(data)


async def test_a_sync_that_is_cancelled_leaves_nothing(contexts: Contexts):
    ahead = contexts.ahead(copy("/", "/new/"), "")
    theirs, ours = channel()
    client: Any = Stuck(theirs, ahead)
    job = SendJob(root=str(contexts.path), prefix="", mtime=None)
    both = asyncio.gather(
        exchange(contexts.store.nursery, job, client),
        contexts.mirrors.sync("key", ours, _nobody_has_it, ahead=ahead),
    )
    await client.stopped.wait()
    both.cancel()
    with pytest.raises(asyncio.CancelledError):
        await both
    await ahead.close()
    await contexts.store.emptied()
    assert contexts.store.nothing_left()


class Changing(Slow):
    """One whose file grows while it is sent."""

    def __init__(self, end: Any, ahead: AheadTar, path: Path) -> None:
        super().__init__(end, ahead)
        self._path = path

    async def send(self, data: bytes) -> None:
        if self.sent < _MUCH <= self.sent + len(data):
            with self._path.open("ab") as file:
                file.write(b"more")
        await super().send(data)


async def test_of_a_file_that_changes_while_it_is_sent_nothing_stays(contexts: Contexts):
    """Though the build goes on."""
    ahead = contexts.ahead(copy("/", "/new/"), "")
    theirs, ours = channel()
    client: Any = Changing(theirs, ahead, contexts.path / "d/large")
    job = SendJob(root=str(contexts.path), prefix="", mtime=None)
    _, element = await asyncio.gather(
        exchange(contexts.store.nursery, job, client),
        contexts.mirrors.sync("key", ours, _nobody_has_it, ahead=ahead),
    )
    assert contexts.half_written() == []
    stack = await contexts.copied(copy("/", "/new/"), "", element, ahead)
    assert contexts.store.blobs.all() == {await contexts.packed(stack)}
