"""Words that are alike for all kinds, shown on volumes and secrets."""

import json

import pytest

from husk.cli.kit.kinds import indented
from tests.support.fake_engine import failed

VOLUMES = {"Volumes": [{"Name": "b", "Driver": "local"}, {"Name": "a", "Driver": "nfs", "Labels": {"x": "y"}}]}


def test_listing(engine, typed):
    engine.answers("GET", "/volumes", VOLUMES)
    assert typed("volume", "ls").out == "DRIVER    VOLUME NAME\nnfs       a\nlocal     b\n"
    assert typed("volume", "ls", "-q").out == "a\nb\n"
    assert typed("volume", "ls", "--format", "{{.Name}}={{.Labels}}").out == "a=x=y\nb=\n"
    assert json.loads(typed("volume", "ls", "--json").out)[0]["Name"] == "b"
    typed("volume", "ls", "-f", "dangling=true")
    assert json.loads(engine.last("GET", "/volumes").query["filters"]) == {"dangling": ["true"]}
    assert typed("volume", "ls", "-f", "dangling").code == 125


def test_inspecting(engine, typed):
    engine.answers("GET", "/volumes/a", {"Name": "a"})
    engine.answers("GET", "/volumes/b", failed(404, "get b: no such volume"))
    told = typed("volume", "inspect", "a", "b")
    assert told.code == 1 and json.loads(told.out) == [{"Name": "a"}]
    assert told.err == "Error response from daemon: get b: no such volume\n"
    assert typed("volume", "inspect", "-f", "{{.Name}}", "a").out == "a\n"


@pytest.mark.parametrize(("flags", "code"), [((), 1), (("-f",), 0)])
def test_removing(engine, typed, flags, code):
    engine.answers("GET", "/volumes/a", {"Name": "a"})
    engine.answers("DELETE", "/volumes/a", None)
    engine.answers("GET", "/volumes/b", failed(404, "get b: no such volume"))
    told = typed("volume", "rm", *flags, "b", "a")
    assert (told.code, told.out) == (code, "a\n") and "no such volume" in told.err


def test_pruning_asks_first(engine, typed):
    engine.answers("POST", "/volumes/prune", {"VolumesDeleted": ["a"], "SpaceReclaimed": 0})
    told = typed("volume", "prune", given="y\n")
    assert "remove anonymous local volumes" in told.err and told.out.startswith("Deleted Volumes:\na\n")
    typed("volume", "prune", "--all", "--force", "--filter", "label=x")
    asked = json.loads(engine.last("POST", "/volumes/prune").query["filters"])
    assert asked == {"label": ["x"], "all": ["true"]}


def test_documents_for_people():
    assert indented({"A": 1, "B": {"C": "x", "D": None}, "E": ["y", {"F": False}]}) == [
        "A: 1",
        "B:",
        "  C: x",
        "E:",
        "  - y",
        "  -",
        "    F: False",
    ]
