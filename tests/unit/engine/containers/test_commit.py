"""A container becomes an image: its layers and its configuration, and what a commit that fails leaves behind."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from husk.engine.containers.commit import Committer
from husk.engine.containers.index import Instance, publish_container
from husk.engine.images.catalog import ImageCatalog
from husk.engine.images.store import ImageStore
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.events import Event, Events
from husk.engine.model.image import CommitOptions, Image
from husk.errors import Conflict, NotFound, SystemFault
from husk.storage.blobs import BlobStore
from husk.storage.layers.chain import chain_id
from husk.storage.layers.ingest import Unpacked
from husk.storage.layers.store import Layer, LayerStore
from tests.support.drivers import FakeRoot
from tests.support.room import Room
from tests.unit.engine.records import container, digest


def layer(diff_id: str, parent: str = "") -> Layer:
    chain = chain_id(parent, diff_id)
    return Layer(
        chain_id=chain, diff_id=diff_id, parent=parent, directory="d", size=1, blob=diff_id, blob_size=1, media_type=""
    )


class FakeLayers:
    """Layers by their names; what a container has written becomes the layer `CHANGED`."""

    def __init__(self, *known: Layer) -> None:
        self.known = {one.chain_id: one for one in known}
        self.discarded: list[str] = []
        self.meanwhile: Callable[[], None] = lambda: None

    def owns(self, blob: str) -> bool:
        return blob in self.blobs()

    def blobs(self) -> set[str]:
        return set()

    def get(self, chain: str) -> Layer | None:
        return self.known.get(chain)

    async def ingest_diff(self, directory: Path) -> Unpacked:
        self.meanwhile()
        return Unpacked(CHANGED, 1, CHANGED, 1, "", "staging", directory, describes_root=False)

    async def commit(self, changes: Unpacked, parent: str) -> Layer:
        made = layer(changes.diff_id, parent)
        self.known[made.chain_id] = made
        return made

    async def discard(self, changes: Unpacked) -> None:
        self.discarded.append(changes.diff_id)

    async def remove(self, chain: str, needed: Callable[[str], bool]) -> bool:
        return not needed(chain) and self.known.pop(chain, None) is not None


BASE, CHANGED = digest("base"), digest("changed")


class Press:
    def __init__(self, room: Room, blobs: BlobStore) -> None:
        self.room = room
        self.base = layer(BASE)
        self.layers = FakeLayers(self.base)
        self.happened: list[Event] = []
        self.catalog = ImageCatalog(room.state)
        events = Events()
        events.observe(self.happened.append)
        store = ImageStore(
            self.catalog,
            blobs,
            cast(LayerStore, self.layers),
            containers=lambda: [instance.record for instance in room.index],
            events=events,
        )
        publish = partial(publish_container, events)
        self.committer = Committer(store, room.index, room.host.assembly, room.pauser, publish)

    async def running(self) -> Instance:
        config = ContainerConfig(cmd=["sleep", "1"], env=["A=1"], labels={"of": "container"})
        return await self.room.started(container("web", config=config, layers=[self.base.chain_id]))

    async def commit(self, **options: Any) -> Image:
        found = self.catalog.get(await self.committer.commit("web", CommitOptions(**options)))
        assert found is not None
        return found


@pytest.fixture
def press(room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Press]:
    blobs = BlobStore.open(tmp_path / "blobs")
    monkeypatch.setattr(FakeRoot, "unchanged", lambda self: False)
    yield Press(room, blobs)
    blobs.close()


async def test_what_it_has_written_is_one_more_layer(press: Press) -> None:
    await press.running()
    made = await press.commit(repo="made", tag="1", author="me", comment="why")
    assert made.diff_ids == [BASE, CHANGED]
    assert (made.config.cmd, made.config.env) == (["sleep", "1"], ["A=1"])
    assert (made.author, made.comment) == ("me", "why")
    assert (made.history[-1].created_by, made.history[-1].empty_layer) == ("sleep 1", False)
    assert [name.familiar for name in press.catalog.names(made)] == ["made:1"]
    assert [event.action for event in press.happened] == ["create", "tag", "commit"]


async def test_one_that_has_written_nothing_is_no_layer(press: Press, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeRoot, "unchanged", lambda self: True)
    await press.running()
    made = await press.commit()
    assert made.diff_ids == [BASE] and made.history[-1].empty_layer
    assert press.catalog.names(made) == []


async def test_it_does_not_write_meanwhile(press: Press) -> None:
    instance = await press.running()
    seen: list[str] = []
    press.layers.meanwhile = lambda: seen.append(instance.record.state.status)
    await press.commit()
    await press.commit(pause=False)
    assert seen == ["paused", "running"]
    assert instance.record.state.status == "running"
    assert [action for action, _ in press.room.host.runtimes.runtime.done] == ["start", "pause", "resume"]


async def test_changes_are_made_to_the_request_or_else_to_the_container(press: Press) -> None:
    await press.running()
    own = await press.commit(changes=["ENV B=2"])
    assert set(own.config.env) == {"A=1", "B=2"} and own.config.labels == {"of": "container"}
    given = await press.commit(changes=["ENV B=2"], config=ContainerConfig(cmd=["other"]))
    assert given.config.cmd == ["other"] and set(given.config.env) == {"A=1", "B=2"}


async def test_a_container_that_goes_meanwhile_is_no_image(press: Press) -> None:
    instance = await press.running()
    state = replace(instance.record.state, status="removing")
    press.layers.meanwhile = lambda: instance.believe(replace(instance.record, state=state))
    with pytest.raises(Conflict, match="which is being removed"):
        await press.commit(pause=False)
    assert press.layers.discarded == [CHANGED] and list(press.catalog) == []


async def test_without_its_images_layers_it_is_none(press: Press) -> None:
    await press.running()
    press.layers.known.clear()
    with pytest.raises(NotFound, match="a layer of the image"):
        await press.commit()


async def test_a_failure_gives_the_new_layer_back(press: Press, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = await press.running()

    async def failing(*_: object) -> None:
        raise SystemFault("no room for it")

    monkeypatch.setattr(press.catalog, "add", failing)
    with pytest.raises(SystemFault):
        await press.commit()
    assert set(press.layers.known) == {press.base.chain_id}
    assert instance.record.state.status == "running", "it goes on all the same"
