"""Paths that never answer cost those who ask for them, and nobody else."""

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from husk.errors import Unavailable
from husk.kernel.mount import Mounted
from husk.runtime.assembly import foreign_paths
from husk.runtime.assembly.foreign_paths import AT_A_MOUNT, AT_A_PATH, ForeignPaths, mount_of
from tests.support.waiting import soon, until_async


class Hung:
    """A file system that does not answer until `gate` is open."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.asked = 0

    def ask(self) -> str:
        self.asked += 1
        self.gate.wait(60)
        return "answered"


@pytest.fixture
def hung() -> Iterator[Hung]:
    hung = Hung()
    yield hung
    hung.gate.set()


async def answered(paths: ForeignPaths, path: str) -> str:
    """As soon as others have left."""
    async with asyncio.timeout(10):
        while True:
            with suppress(Unavailable):
                return await paths.touch(path, lambda: "answered")
            await asyncio.sleep(0.01)


async def test_what_answers_is_told() -> None:
    paths = ForeignPaths()
    assert await paths.touch("/a", lambda: 5) == 5
    with pytest.raises(FileNotFoundError):
        await paths.touch("/a", lambda: os.stat("/a/b/c"))


async def test_who_waits_too_long_is_told_so_and_the_next_at_once(hung: Hung) -> None:
    paths = ForeignPaths(deadline=0.05)
    for _ in range(AT_A_PATH):
        with pytest.raises(Unavailable, match=r"/nfs/x does not answer within 0.05 seconds"):
            await paths.touch("/nfs/x", hung.ask)
    with pytest.raises(Unavailable, match="others wait for it already"):
        await paths.touch("/nfs/x", hung.ask)
    assert hung.asked == AT_A_PATH
    assert await paths.touch("/other", lambda: 5) == 5
    hung.gate.set()
    assert await answered(paths, "/nfs/x") == "answered"


async def test_a_mount_has_a_quota_whatever_the_path(hung: Hung) -> None:
    paths = ForeignPaths(find_mount=lambda path: "/nfs" if path.startswith("/nfs") else "/")
    waiting = [soon(paths.touch(f"/nfs/{number}", hung.ask)) for number in range(40)]
    most = AT_A_MOUNT + 4  # so few, wherever they are
    await until_async(lambda: hung.asked == most, "as many are there as may be")
    assert await paths.touch("/srv", lambda: 5) == 5
    assert hung.asked == most
    hung.gate.set()
    assert set(await asyncio.gather(*waiting)) == {"answered"}
    again = [paths.touch(f"/nfs/{number}", hung.ask) for number in range(most)]
    assert set(await asyncio.gather(*again)) == {"answered"}


async def test_who_gives_up_leaves_no_place_taken(hung: Hung) -> None:
    paths = ForeignPaths()
    waiting = [soon(paths.touch("/nfs", hung.ask)) for _ in range(5)]
    await until_async(lambda: hung.asked == AT_A_PATH, "two ask")
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    hung.gate.set()
    assert await paths.touch("/nfs", hung.ask) == "answered"
    assert hung.asked == AT_A_PATH + 1


async def test_a_crowd_that_is_answered_waits_for_nothing() -> None:
    paths = ForeignPaths()
    assert await asyncio.gather(*(paths.touch("/a", lambda: 5) for _ in range(200))) == [5] * 200


def test_the_mount_of_a_path() -> None:
    assert mount_of("/proc/self/status") == "/proc"
    assert mount_of("/proc") == "/proc"
    assert mount_of("/procession") == "/"


def test_the_mount_of_a_path_is_the_one_that_links_lead_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quota that a link goes around would take the host's own file systems from everybody."""
    place = tmp_path / "nfs"
    place.mkdir()
    for name, target in (("link", place), ("below", "nfs/a/b"), ("around", "link/.."), ("loop", "loop")):
        (tmp_path / name).symlink_to(target)
    (place / "further").symlink_to("/proc")
    entry = partial(Mounted, device="0:1", root="/", options=frozenset())
    monkeypatch.setattr(foreign_paths, "mounted", lambda: [entry("/", "ext4"), entry(str(place), "nfs4")])
    asked: list[str] = []
    read = os.readlink

    def readlink(path: str) -> str:
        asked.append(path)
        return read(path)

    monkeypatch.setattr(os, "readlink", readlink)
    for path in (place, place / "x", tmp_path / "link", tmp_path / "link" / "x", tmp_path / "below" / "c"):
        assert mount_of(str(path)) == str(place)
    assert mount_of(str(place / "further" / "x")) == str(place)
    assert not any(each.startswith(str(place)) for each in asked), "it is not asked"
    for own in (str(tmp_path / "x"), str(tmp_path / "loop"), "relative", ""):
        assert mount_of(own) == "/"
