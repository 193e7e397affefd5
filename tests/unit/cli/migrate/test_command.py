"""`husk migrate` as it is typed, and the file that it writes."""

from pathlib import Path

import pytest


def test_both_must_not_be_the_same(typed, engine):
    engine.answers("GET", "/info", {"ID": "one"})
    done = typed("migrate", "--from", "docker")
    assert done.code == 1 and "both are the same engine" in done.err


@pytest.fixture
def web(engine):
    """An engine that answers for both, and has a container called web."""
    engine.answers("GET", "/info", *({"ID": each} for each in ("one", "two") * 3))
    engine.answers("GET", "/containers/json", [{"Id": "c1"}])
    engine.answers(
        "GET", "/containers/c1/json", {"Id": "c1", "Name": "/web", "Image": "sha256:1", "State": {"Status": "exited"}}
    )
    engine.answers("GET", "/images/json", [])
    engine.answers("GET", "/volumes", {"Volumes": []})
    engine.answers("GET", "/networks", [{"Name": "bridge"}])


def test_what_came_over_is_told(typed, web, tmp_path: Path):
    file = tmp_path / "compose.yaml"
    done = typed("migrate", "--from", "podman", "--compose", str(file))
    assert done.code == 0, done.err
    assert f"1 containers in {file}" in done.out and '"container_name": "web"' in file.read_text()


def test_a_file_with_something_else_stays(typed, web, tmp_path: Path):
    file = tmp_path / "compose.yaml"
    line = ("migrate", "--from", "podman", "--compose", str(file))
    assert (typed(*line).code, typed(*line).code) == (0, 0)
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("mine")
    done = typed(*line)
    assert done.code == 1 and "--compose names another" in done.out and file.read_text() == "mine"


def test_a_file_that_cannot_be_written_is_told(typed, web, tmp_path: Path):
    done = typed("migrate", "--from", "podman", "--compose", str(tmp_path / "none/compose.yaml"))
    assert done.code == 1 and "cannot write" in done.err


def test_a_setting_that_is_lost_is_told_and_fails(typed, engine, tmp_path: Path):
    engine.answers("GET", "/info", {"ID": "one"}, {"ID": "two"})
    engine.answers("GET", "/containers/json", [{"Id": "c1"}])
    linked = {"Id": "c1", "Name": "/shop", "Image": "sha256:1", "HostConfig": {"Links": ["/db:/shop/db"]}}
    engine.answers("GET", "/containers/c1/json", {**linked, "State": {"Status": "exited"}})
    engine.answers("GET", "/images/json", [])
    engine.answers("GET", "/volumes", {"Volumes": []})
    engine.answers("GET", "/networks", [{"Name": "bridge"}])
    done = typed("migrate", "--from", "docker", "--compose", str(tmp_path / "compose.yaml"))
    assert done.code == 1 and "shop: not carried: links\n" in done.out


def test_whose_things_has_to_be_said(typed, engine):
    assert typed("migrate").code == 1
    assert typed("migrate", "--from", "lxc").code == 125
