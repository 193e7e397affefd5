"""`docker system df` over HTTP, in both shapes, and the pruning of builds."""

from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientSession

from husk.builder.cache.prune import Item
from husk.engine.model.container import State
from husk.engine.model.filters import Filters
from husk.engine.model.volume import Volume, VolumeUsage
from tests.unit.api.fake_engine import FakeEngine, container


def item(id: str, size: int, *, in_use: bool = False, shared: bool = False) -> Item:
    return Item(
        id=id, parents=[], type="regular", description="RUN x", in_use=in_use, shared=shared, size=size, created=0,
        last_used=0, uses=1,
    )  # fmt: skip


class FakeBuilder:
    def __init__(self) -> None:
        self.pruned: tuple[Filters, bool, int] | None = None

    async def get(self) -> "FakeBuilder":
        return self

    async def cache(self) -> list[Item]:
        return [item("a", 10, in_use=True), item("b", 20), item("c", 40, shared=True)]

    async def prune(self, filters: Filters, *, all: bool, keep: int) -> Any:
        self.pruned = filters, all, keep
        return SimpleNamespace(items=[item("b", 20)], freed=20)


@pytest.fixture
def builder(engine: FakeEngine) -> FakeBuilder:
    images: Any = engine.images
    images.layers_size = lambda: 4_000_000
    images.reclaimable = lambda: 1_000_000
    volumes: Any = engine.volumes
    used = [(Volume(name="used", created=""), 5, 1), (Volume(name="free", created=""), 7, 0)]

    async def usage() -> list[VolumeUsage]:
        return [VolumeUsage(*one) for one in used]

    volumes.usage = usage
    volumes.mountpoint = lambda volume: f"/volumes/{volume.name}"
    engine.containers.add(container("runs", state=State(status="running")))
    engine.containers.add(container("ended", state=State(status="exited")))
    engine.builder = FakeBuilder()
    return engine.builder


async def test_new_clients_get_sums(client: ClientSession, builder: FakeBuilder) -> None:
    shown = await (await client.get("/v1.52/system/df")).json()
    assert shown["ContainerUsage"] == {"ActiveCount": 1, "TotalCount": 2, "Reclaimable": 10, "TotalSize": 20}
    assert shown["VolumeUsage"] == {"ActiveCount": 1, "TotalCount": 2, "Reclaimable": 7, "TotalSize": 12}
    assert shown["BuildCacheUsage"] == {"ActiveCount": 1, "TotalCount": 3, "Reclaimable": 20, "TotalSize": 70}
    assert shown["ImageUsage"]["Reclaimable"] == 1_000_000
    verbose = await (await client.get("/v1.52/system/df?verbose=1&type=volume")).json()
    assert list(verbose) == ["VolumeUsage"] and len(verbose["VolumeUsage"]["Items"]) == 2


async def test_older_ones_get_everything_or_what_they_name(client: ClientSession, builder: FakeBuilder) -> None:
    shown = await (await client.get("/v1.51/system/df")).json()
    assert (shown["LayersSize"], len(shown["Containers"]), len(shown["BuildCache"])) == (4_000_000, 2, 3)
    assert shown["Images"][0]["RepoDigests"] is None and "BuilderSize" not in shown
    some = await (await client.get("/v1.51/system/df?type=image&type=build-cache")).json()
    assert (some["Containers"], some["Volumes"]) == (None, None) and some["Images"]
    assert (await (await client.get("/v1.41/system/df")).json())["BuilderSize"] == 70
    assert (await client.get("/system/df?type=nonsense")).status == 400


async def test_builds_are_pruned_as_far_as_the_client_says(client: ClientSession, builder: FakeBuilder) -> None:
    response = await client.post(
        "/build/prune", params={"all": "1", "keep-storage": "5", "filters": '{"until":["1h"]}'}
    )
    assert await response.json() == {"CachesDeleted": ["b"], "SpaceReclaimed": 20}
    assert builder.pruned is not None and builder.pruned[1:] == (True, 5) and builder.pruned[0].get("until") == ["1h"]
    await client.post("/build/prune", params={"max-used-space": "9", "keep-storage": "5", "filters": '{"label":["a"]}'})
    assert builder.pruned[1:] == (False, 9) and not list(builder.pruned[0])
    await client.post("/build/prune", params={"reserved-space": "-9"})
    assert builder.pruned[2] == 0


@pytest.mark.parametrize("filters", ['{"id": ["a", "b"]}', '{"id": [""]}', '{"shape": ["x"]}', "{"])
async def test_filters_that_mean_nothing_prune_nothing(
    client: ClientSession, builder: FakeBuilder, filters: str
) -> None:
    assert (await client.post("/build/prune", params={"filters": filters})).status == 400
    assert builder.pruned is None
