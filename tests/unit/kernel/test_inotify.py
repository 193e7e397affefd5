"""Changes of files and in directories, as the event loop hears of them."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from husk.kernel.inotify import IN_CLOSE, IN_MODIFY, FileWatch, Watches


async def heard(watch: FileWatch) -> bool:
    try:
        async with asyncio.timeout(0.05):
            await watch.changed()
    except TimeoutError:
        return False
    return True


async def test_a_file_that_grows_and_one_that_takes_its_place_are_changes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("ab", buffering=0) as file:
        async with FileWatch(file.fileno(), tmp_path) as watch:
            assert not await heard(watch)
            file.write(b"a")
            file.write(b"b")
            async with asyncio.timeout(10):
                await watch.changed()
            assert not await heard(watch), "what has been told is not told again"
            os.rename(log, tmp_path / "log.1")
            async with asyncio.timeout(10):
                await watch.changed()
            watch.wake()
            async with asyncio.timeout(10):
                await watch.changed()


async def test_a_file_that_cannot_be_watched_leaves_no_descriptor(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    (tmp_path / "file").touch()
    with (tmp_path / "log").open("wb") as file, pytest.raises(NotADirectoryError):
        async with FileWatch(file.fileno(), tmp_path / "file" / "below"):
            pass
    assert len(os.listdir("/proc/self/fd")) == before


async def test_an_open_file_is_watched_though_its_directory_is_gone(tmp_path: Path) -> None:
    directory = tmp_path / "gone"
    directory.mkdir()
    with (directory / "log").open("ab", buffering=0) as file:
        shutil.rmtree(directory)
        async with FileWatch(file.fileno(), directory) as watch:
            file.write(b"a")
            async with asyncio.timeout(10):
                await watch.changed()


async def test_each_watch_is_told_of_its_own(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for directory in (one, two):
        directory.mkdir()
    told: list[tuple[str, bytes]] = []
    both = asyncio.Event()

    def note(which: str, name: bytes) -> None:
        told.append((which, name))
        if len(told) >= 2:
            both.set()

    watches = Watches()
    first = watches.add(one, IN_CLOSE, lambda name: note("one", name))
    watches.add(two, IN_CLOSE, lambda name: note("two", name))
    (two / "b").write_text("x")
    (one / "a-much-longer-name").write_text("x")
    async with asyncio.timeout(10):
        await both.wait()
    assert sorted(told) == [("one", b"a-much-longer-name"), ("two", b"b")]
    watches.remove(first)
    watches.remove(first)
    both.clear()
    (one / "c").write_text("x")
    (two / "d").write_text("x")
    async with asyncio.timeout(10):
        await both.wait()
    assert told[2:] == [("two", b"d")]
    with pytest.raises(FileNotFoundError):
        watches.add(tmp_path / "nowhere", IN_MODIFY, lambda name: None)
    watches.close()
    watches.close()
