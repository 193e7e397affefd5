from tests.support.fake_engine import FakeEngine
from tests.unit.dashboard.pages.conftest import Visitor

VOLUME = {
    "Name": "data",
    "Driver": "local",
    "Mountpoint": "/v/data",
    "CreatedAt": "2026-01-01T00:00:00Z",
    "Labels": None,
}
CONTAINER = {"Id": "c" * 64, "Names": ["/web"], "Mounts": [{"Type": "volume", "Name": "data"}, {"Type": "bind"}]}


async def test_volumes_tell_who_has_them(engine: FakeEngine, visitor: Visitor) -> None:
    engine.answers("GET", "/volumes", {"Volumes": [VOLUME]})
    engine.answers("GET", "/volumes/data", VOLUME)
    engine.answers("GET", "/containers/json", [CONTAINER])
    for path in ("/volumes", "/volumes/data"):
        text = (await visitor.get(path)).text
        assert "data" in text and "/containers/web" in text


async def test_a_volume_is_removed_after_a_question(engine: FakeEngine, visitor: Visitor) -> None:
    engine.answers("GET", "/volumes", {"Volumes": []})
    engine.answers("GET", "/volumes/data", VOLUME)
    engine.answers("DELETE", "/volumes/data", None)
    assert "Remove the volume data?" in (await visitor.get("/volumes/data/remove")).text
    assert not [each for each in engine.asked if each.method == "DELETE"]
    assert (await visitor.post("/volumes/data/remove")).status == 303
    assert "The volume data was removed." in (await visitor.get("/volumes")).text


async def test_a_prune_says_first_what_it_frees(engine: FakeEngine, visitor: Visitor) -> None:
    named = {**VOLUME, "UsageData": {"RefCount": 0, "Size": 3000}}
    nameless = {**named, "Labels": {"com.docker.volume.anonymous": ""}, "UsageData": {"RefCount": 0, "Size": 1000}}
    engine.answers("GET", "/system/df", {"Volumes": [named, nameless, {**VOLUME, "UsageData": {"RefCount": 1}}]})
    engine.answers("POST", "/volumes/prune", {"VolumesDeleted": ["a", "b"], "SpaceReclaimed": 4000})
    asked = (await visitor.get("/volumes/prune")).text
    assert "own: 1, which frees 1.0 kB. All: 2, which frees 4.0 kB." in asked
    assert (await visitor.post("/volumes/prune", all="1")).status == 303
    assert engine.last("POST", "/volumes/prune").query["filters"] == '{"all":["true"]}'
