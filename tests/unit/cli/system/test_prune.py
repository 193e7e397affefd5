import json

from husk.cli.system.prune import warning


def test_what_is_told(engine, typed):
    engine.answers("POST", "/containers/prune", {"ContainersDeleted": ["abc"], "SpaceReclaimed": 5})
    engine.answers("POST", "/networks/prune", {"NetworksDeleted": ["n"]})
    engine.answers("POST", "/images/prune", {"ImagesDeleted": [{"Deleted": "sha256:1"}], "SpaceReclaimed": 1000})
    engine.answers("POST", "/build/prune", {"CachesDeleted": [], "SpaceReclaimed": 0})
    assert typed("prune", "-f").out == (
        "Deleted Containers:\nabc\n\nDeleted Networks:\nn\n\nDeleted Images:\ndeleted: sha256:1\n\n"
        "Total reclaimed space: 1.005kB\n"
    )
    assert json.loads(typed("prune", "-f", "--json").out)["SpaceReclaimed"] == 1005


def test_it_is_asked_first():
    assert "all anonymous volumes" in warning(True, True) and "all dangling images" in warning(False, False)
