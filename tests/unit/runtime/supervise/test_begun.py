"""Runtimes that are started before their bundle is there; the runtime is a script here."""

import asyncio
import contextlib
import errno
import os
from pathlib import Path

import pytest

from husk.errors import SystemFault
from husk.kernel import process
from husk.kernel.cgroup_moves import Moves
from husk.runtime.supervise.begun import CONFIG, Begun, ContainerEnd

_SCRIPT = """#!/bin/sh
exec cat {bundle}/config.json
"""


class Expected(Moves):
    """A count of how often a move was expected."""

    count = 0

    def expect(self) -> None:
        self.count += 1


class Place:
    def __init__(self, directory: Path) -> None:
        self.bundle = directory / "bundles" / "id"
        program = directory / "runtime"
        program.write_text(_SCRIPT.format(bundle=self.bundle))
        program.chmod(0o755)
        self.moves = Expected()
        self.begun = Begun([str(program)], self.bundle, "id", self.moves)
        self.said = b""

    def told(self, data: bytes, stderr: bool) -> None:
        assert not stderr, data
        self.said += data

    def write(self, config: bytes) -> None:
        self.bundle.mkdir(parents=True, exist_ok=True)
        (self.bundle / "whole").write_bytes(config)
        (self.bundle / "whole").rename(self.bundle / CONFIG)


def has_open(pid: int, path: Path) -> bool:
    found = Path(f"/proc/{pid}/fd")
    with contextlib.suppress(OSError):
        return any(os.readlink(entry) == str(path) for entry in found.iterdir())
    return False


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_one_that_was_not_started_finds_the_file(place: Place) -> None:
    place.write(b"{}")
    async with place.begun as begun:
        assert not begun.waits
        assert await begun.run(b"{}", place.told) == ContainerEnd(0)
    assert place.said == b"{}"
    assert place.moves.count == 1, "what it was moved for a moment ago serves the next one too"


async def test_one_that_waits_is_told_at_the_pipe(place: Place) -> None:
    async with place.begun as begun:
        await begun.start()
        async with asyncio.timeout(30):
            while not begun.waits:
                await asyncio.sleep(0.005)
        place.write(b"the same")
        assert await begun.run(b"the same", place.told) == ContainerEnd(0)
        assert not begun.waits
    assert place.said == b"the same"


@pytest.mark.parametrize("size", [100_000, 900_000])
async def test_a_large_configuration_comes_whole(place: Place, size: int) -> None:
    async with place.begun as begun:
        await begun.start()
        place.write(b"x" * size)
        assert await begun.run(b"x" * size, place.told) == ContainerEnd(0)
    assert place.said == b"x" * size


async def test_one_that_is_too_large_for_a_pipe_is_read_from_the_file(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Begun, "_tell", lambda self, config: False)
    async with place.begun as begun:
        await begun.start()
        place.write(b"much")
        assert await begun.run(b"much", place.told) == ContainerEnd(0)
    assert place.said == b"much"


async def test_what_waits_for_nothing_is_ended(place: Place) -> None:
    before = set(os.listdir("/proc/self/fd"))
    async with place.begun as begun:
        await begun.start()
        child = begun._child
        assert child is not None
        pid = child.pid
    assert process.start_time(pid) is None
    assert set(os.listdir("/proc/self/fd")) == before
    await begun.discard()
    assert not place.bundle.exists()


async def test_it_gives_up_when_the_daemon_goes(place: Place) -> None:
    async with place.begun as begun:
        await begun.start()
        assert begun._child is not None
        async with asyncio.timeout(30):
            while not has_open(begun._child.pid, place.bundle / CONFIG):
                await asyncio.sleep(0.005)
        begun._close_config()  # as the kernel does for one that dies
        await process.wait_exit(begun._child.pidfd)
        assert not begun.waits


async def test_one_that_has_not_come_to_the_pipe_does_not_wait_yet(place: Place, tmp_path: Path) -> None:
    """The kernel would let it wait for ever if it opened the pipe when all was said."""
    os.mkfifo(tmp_path / "go")
    program = tmp_path / "runtime"
    program.write_text(f"#!/bin/sh\nread go < {tmp_path}/go\n" + program.read_text())
    async with place.begun as begun:
        await begun.start()
        assert not begun.waits
        await asyncio.to_thread((tmp_path / "go").write_text, "go\n")
        async with asyncio.timeout(30):
            while not begun.waits:
                await asyncio.sleep(0.005)


async def test_nothing_stays_of_one_for_which_there_are_no_pipes(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(os.listdir("/proc/self/fd"))
    pipe2 = os.pipe2

    def one_alone(flags: int) -> tuple[int, int]:
        monkeypatch.setattr(os, "pipe2", none)
        return pipe2(flags)

    def none(flags: int) -> tuple[int, int]:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(os, "pipe2", one_alone)
    with pytest.raises(SystemFault, match="too many open files"):
        await place.begun.start()
    monkeypatch.undo()
    await place.begun.discard()
    assert not place.bundle.exists() and set(os.listdir("/proc/self/fd")) == before


async def test_a_bundle_that_cannot_be_made(place: Place) -> None:
    place.bundle.parent.mkdir()
    place.bundle.touch()
    async with place.begun as begun:
        with pytest.raises(SystemFault, match="cannot make a bundle"):
            await begun.start()
        assert not begun.waits
