import pytest


@pytest.fixture(autouse=True)
def litter(engine):
    engine.answers("POST", "/containers/prune", {"ContainersDeleted": ["c1"], "SpaceReclaimed": 1})
    engine.answers("POST", "/networks/prune", {"NetworksDeleted": None})
    engine.answers("POST", "/volumes/prune", {"VolumesDeleted": ["v1"], "SpaceReclaimed": 10})
    deleted = [{"Untagged": "a:1"}, {"Deleted": "sha256:1"}]
    engine.answers("POST", "/images/prune", {"ImagesDeleted": deleted, "SpaceReclaimed": 100})
    engine.answers("POST", "/build/prune", {"CachesDeleted": ["b1"], "SpaceReclaimed": 1000})


async def test_what_nobody_uses(client, engine):
    pruned = await client.prune()
    assert (pruned.containers, pruned.networks, pruned.volumes) == (["c1"], [], [])
    assert (pruned.images, pruned.build_cache, pruned.space_reclaimed) == (["sha256:1"], ["b1"], 1101)
    assert engine.last("POST", "/images/prune").query == {"filters": '{"dangling":["true"]}'}
    assert "/volumes/prune" not in [asked.path for asked in engine.asked]


async def test_all_of_it(client, engine):
    pruned = await client.prune(all=True, volumes=True, filters={"until": "24h", "label": "x"})
    assert (pruned.volumes, pruned.space_reclaimed) == (["v1"], 1111)
    assert engine.last("POST", "/volumes/prune").query == {"filters": '{"label":["x"]}'}
    assert engine.last("POST", "/build/prune").query["all"] == "1"
    wanted = '{"until":["24h"],"label":["x"],"dangling":["false"]}'
    assert engine.last("POST", "/images/prune").query == {"filters": wanted}
