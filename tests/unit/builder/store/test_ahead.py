"""The life of a tar that is packed ahead."""

import asyncio
import errno
from pathlib import Path
from typing import Any

import pytest

from husk.aio.tasks import Tasks
from husk.builder.store.ahead import AheadTar
from husk.errors import NotFound
from husk.storage.workers.answers import Answer, Failed, Packed
from husk.storage.workers.parts import MARK, Blob

BLOB = Blob("sha256:" + "0" * 64, 3)


class Worker:
    """One that packs; `answer` is what it says in the end."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.answer = answer or Packed(BLOB, "heads")
        self.stopped = False

    async def outcome(self) -> Answer | None:
        return self.answer

    def stop(self) -> None:
        self.stopped = True


class Tars:
    def __init__(self, top: Path) -> None:
        self.file = top / "file"
        self.lead: bytes | None = b"lead"
        self.tar = AheadTar(self._make, self._lead)
        self.worker: Any = Worker()

    def _make(self) -> Path:
        self.file.touch()
        return self.file

    async def _lead(self, time: int) -> bytes | None:
        assert time % 10**9 == 0
        if self.lead == b"fails":
            raise NotFound("gone")
        return self.lead

    def sync(self) -> None:
        self.tar.open()
        self.tar.follow(self.worker)
        self.tar.received("diff:1")


@pytest.fixture
def tars(tmp_path: Path) -> Tars:
    return Tars(tmp_path)


async def test_from_its_plan_to_a_blob(tars: Tars, tmp_path: Path):
    plan = tars.tar.open()
    assert plan is not None
    assert plan.path == str(tars.file)
    await tars.tar.begin()
    assert tars.file.read_bytes() == MARK + b"lead"
    tars.tar.follow(tars.worker)
    tars.tar.received("diff:1")
    async with tars.tar.taken(["diff:2"]) as packing:
        assert packing is None
    async with tars.tar.taken(["", "diff:1"]) as packing:
        assert packing is not None
        assert (packing.path, packing.lead) == (str(tars.file), b"lead")
        await tars.tar.close()  # by a build that does not wait any more: others do
        assert await packing.blob("heads") == BLOB
        tars.file.rename(tmp_path / "adopted")
    assert tars.worker.stopped
    async with tars.tar.taken(["diff:1"]) as packing:
        assert packing is None
    await tars.tar.close()
    assert (tmp_path / "adopted").exists()


async def test_one_that_is_not_taken_goes_with_its_worker(tars: Tars):
    tars.sync()
    await tars.tar.close()
    assert not tars.file.exists()
    assert tars.worker.stopped
    async with tars.tar.taken(["diff:1"]) as packing:
        assert packing is None


@pytest.mark.parametrize(("heads", "answer"), [("others", None), ("", None), ("heads", Failed("x")), ("", Packed())])
async def test_one_that_was_wrong_goes(tars: Tars, heads: str, answer: Answer | None):
    tars.worker = Worker(answer)
    tars.sync()
    async with tars.tar.taken(["diff:1"]) as packing:
        assert packing is not None
        assert await packing.blob(heads) is None
    assert not tars.file.exists()
    assert tars.worker.stopped


async def test_one_that_nobody_wants_is_not_begun(tars: Tars):
    await tars.tar.close()
    assert tars.tar.open() is None
    assert not tars.file.exists()
    tars.tar.follow(tars.worker)
    assert tars.worker.stopped


async def test_it_is_made_once(tars: Tars):
    tars.tar.open()
    assert tars.tar.open() is None


@pytest.mark.parametrize("lead", [None, b"fails", bytes(100_000)])
async def test_what_it_begins_with_cannot_be_told(tars: Tars, lead: bytes | None):
    tars.lead = lead
    tars.tar.open()
    await tars.tar.begin()
    assert tars.file.read_bytes() == b""
    tars.tar.received("diff:1")
    async with tars.tar.taken(["diff:1"]) as packing:
        assert packing is None


async def test_the_beginning_comes_too_late(tars: Tars):
    tars.tar.open()
    await tars.tar.close()
    await tars.tar.begin()
    assert not tars.file.exists()


async def test_who_is_cancelled_again_leaves_nothing_either(tars: Tars):
    going = asyncio.Event()

    class Slow(Worker):
        async def outcome(self) -> Answer | None:
            try:
                await asyncio.Event().wait()
            finally:
                going.set()
                await asyncio.sleep(0)
            return None

    tars.worker = Slow()
    tars.sync()
    await asyncio.sleep(0)
    closing = Tasks().spawn(tars.tar.close(), "close", awaited=True)
    await going.wait()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert tars.worker.stopped and not tars.file.exists()


async def test_on_a_full_disk_nothing_is_packed_ahead(tars: Tars, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr("husk.builder.store.ahead.os.pwrite", full)
    tars.sync()
    await tars.tar.begin()
    assert tars.tar.lead == b""  # so nobody waits for the worker, who waits for it
    await tars.tar.close()
    assert not tars.file.exists()
