import json

import pytest

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


@pytest.mark.parametrize("answer", ["", "n\n", "maybe\n"])
def test_whatever_is_not_yes_is_no_also_the_end_of_stdin(typed, answer):
    done = typed("prune", given=answer)
    assert (done.code, done.out) == (0, "")
    assert done.err.endswith("Are you sure you want to continue? [y/N] ")


def test_yes_removes(engine, typed):
    for kind in ("containers", "networks", "images", "build"):
        engine.answers("POST", f"/{kind}/prune", {})
    assert typed("prune", given="Y\n").out == "Total reclaimed space: 0B\n"
