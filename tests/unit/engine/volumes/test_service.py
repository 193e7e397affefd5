"""Volumes while several clients and containers are at them at once."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.aio import threads
from husk.aio.tasks import Tasks
from husk.engine.model.container import Container, MountPoint
from husk.engine.model.events import Events
from husk.engine.model.filters import Filters
from husk.engine.volumes.service import KIND, Volumes
from husk.engine.volumes.spec import VolumeSpec
from husk.errors import DiskFault, NotFound
from husk.runtime.assembly.foreign_paths import ForeignPaths
from husk.storage.volumes.store import VolumeStore
from tests.support.but import but
from tests.support.full_store import FullStore
from tests.unit.engine.records import container


class Shelf:
    """Volumes on a real disk, and the containers that have them."""

    def __init__(self, directory: Path) -> None:
        self.state = FullStore.open(directory / "state.db")
        self.store = VolumeStore.open(directory / "volumes", set())
        self.containers: list[Container] = []
        self.told: list[str] = []
        events = Events()
        events.observe(lambda event: self.told.append(event.action))
        self.volumes = Volumes(self.store, self.state, events, [], lambda: self.containers)

    async def container_with_unnamed(self) -> Container:
        """A container that was made with a volume of its own."""
        record = container()
        async with self.volumes.taking() as taking:
            volume = await taking.take(VolumeSpec())
            await self.state.commit(*taking.changes)
            taking.done()
        return self._with(record, volume.name)

    def sharing(self, other: Container) -> Container:
        """A container with the other's volumes, as `--volumes-from` makes it."""
        return self._with(container(), other.mounts[0].name)

    def _with(self, record: Container, name: str) -> Container:
        record = but(record, mounts=[MountPoint(type="volume", name=name, destination="/data", anonymous=True)])
        self.containers.append(record)
        return record

    async def remove(self, record: Container) -> None:
        """As `docker rm -v`."""
        async with self.volumes.going_with(record, volumes=True) as changes:
            await self.state.commit(*changes)
            self.containers.remove(record)

    def names(self) -> set[str]:
        return {volume.name for volume in self.volumes.listing(Filters.parse("", ()))}

    def is_whole(self, name: str) -> bool:
        """It is in memory, in the store and on disk, or in none of them."""
        places = {name in self.names(), name in self.state.load(KIND), self.store.data(name).is_dir()}
        return len(places) == 1


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path)
    yield shelf
    shelf.state.close()


@pytest.mark.parametrize("force", [False, True])
async def test_of_two_removals_that_waited_one_finds_nothing(shelf: Shelf, tmp_path: Path, force: bool) -> None:
    volume = await shelf.volumes.create(VolumeSpec("vol"))
    (tmp_path / "empty").mkdir()
    source = os.open(tmp_path / "empty", os.O_RDONLY)
    filling = shelf.volumes.fill(volume, source)
    removals = [shelf.volumes.remove("vol", force) for _ in range(2)]
    try:
        outcomes = await asyncio.gather(filling, *removals, return_exceptions=True)
    finally:
        os.close(source)
    assert [type(outcome) for outcome in outcomes if outcome] == ([] if force else [NotFound])
    assert shelf.is_whole("vol") and shelf.names() == set()
    assert shelf.told == ["create", "destroy"]


async def test_a_prune_leaves_what_has_come_to_the_name_of_another(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shelf.volumes.create(VolumeSpec("vol"))
    measuring, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def size(name: str) -> int:
        loop.call_soon_threadsafe(measuring.set)
        go_on.wait(10)
        return 0

    monkeypatch.setattr(shelf.store, "size", size)
    filters = Filters.parse('{"label!": ["keep"]}', ("label!",))
    pruning = Tasks().spawn(shelf.volumes.prune(filters, everything=True), "prune", awaited=True)
    await measuring.wait()
    await shelf.volumes.remove("vol", force=False)
    await shelf.volumes.create(VolumeSpec("vol", labels={"keep": ""}))
    go_on.set()
    assert (await pruning).names == []
    assert shelf.names() == {"vol"}


async def test_an_unnamed_volume_goes_with_the_last_of_containers_that_go_at_once(shelf: Shelf) -> None:
    one = await shelf.container_with_unnamed()
    other = shelf.sharing(one)
    await asyncio.gather(shelf.remove(one), shelf.remove(other))
    assert shelf.names() == set()
    assert shelf.is_whole(one.mounts[0].name)


async def test_a_volume_made_under_the_name_of_one_that_goes_is_whole(shelf: Shelf) -> None:
    one = await shelf.container_with_unnamed()
    name = one.mounts[0].name
    async with shelf.volumes.going_with(one, volumes=True) as changes:
        making = Tasks().spawn(shelf.volumes.create(VolumeSpec(name)), "create", awaited=True)
        made, _ = await asyncio.wait([making], timeout=0.05)
        assert not made
        await shelf.state.commit(*changes)
        shelf.containers.remove(one)
    await making
    assert shelf.names() == {name}
    assert shelf.is_whole(name)


async def test_a_volume_that_goes_is_not_shared(shelf: Shelf) -> None:
    one = await shelf.container_with_unnamed()
    async with shelf.volumes.taking() as taking, shelf.volumes.going_with(one, volumes=True):
        with pytest.raises(NotFound):
            taking.share(one.mounts[0].name)


async def test_a_shared_volume_stays_though_its_container_goes(shelf: Shelf) -> None:
    one = await shelf.container_with_unnamed()
    name = one.mounts[0].name
    async with shelf.volumes.taking() as taking:
        taking.share(name)
        await shelf.remove(one)
        assert shelf.names() == {name}
    assert shelf.is_whole(name)


async def test_a_mount_that_falls_silent_while_it_is_counted_takes_no_walker(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its root may answer for a while, out of what the kernel remembers."""
    await shelf.volumes.create(VolumeSpec(name="away", options={"type": "none", "o": "bind", "device": "/srv"}))
    await shelf.volumes.create(VolumeSpec(name="here"))
    answers = threading.Event()
    counted = shelf.store.size

    def size(name: str) -> int:
        if name == "away":
            answers.wait(60)
        return counted(name)

    monkeypatch.setattr(shelf.store, "size", size)
    monkeypatch.setattr(shelf.volumes, "_counted", ForeignPaths(0.05))
    try:
        sizes = {each.volume.name: each.size for _ in range(threads.WALKERS) for each in await shelf.volumes.usage()}
    finally:
        answers.set()
    assert sizes["away"] == -1 and sizes["here"] >= 0


async def test_what_the_store_does_not_take_is_nowhere(shelf: Shelf) -> None:
    await shelf.volumes.create(VolumeSpec("there"))
    shelf.state.full = True
    for name in ("new", "there"):
        with contextlib.suppress(DiskFault):
            await shelf.volumes.create(VolumeSpec(name, labels={"a": "b"}))
    assert shelf.names() == {"there"} and shelf.told == ["create"]
    assert shelf.is_whole("new") and shelf.is_whole("there")
    assert shelf.volumes.find("there").labels is None
    with pytest.raises(NotFound):
        shelf.volumes.find("new")
