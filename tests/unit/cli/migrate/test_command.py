"""`husk migrate` as it is typed, and the file that it writes."""

from pathlib import Path

import pytest

from husk.cli.migrate.command import _save
from husk.cli.migrate.report import MigrationReport
from husk.errors import SystemFault


def test_both_must_not_be_the_same(typed, engine):
    engine.answers("GET", "/info", {"ID": "one"})
    done = typed("migrate", "--from", "docker")
    assert done.code == 1 and "both are the same engine" in done.err


def test_what_came_over_is_told(typed, engine, tmp_path: Path):
    engine.answers("GET", "/info", {"ID": "one"}, {"ID": "two"})
    engine.answers("GET", "/containers/json", [{"Id": "c1"}])
    engine.answers(
        "GET", "/containers/c1/json", {"Id": "c1", "Name": "/web", "Image": "sha256:1", "State": {"Status": "exited"}}
    )
    engine.answers("GET", "/images/json", [])
    engine.answers("GET", "/volumes", {"Volumes": []})
    engine.answers("GET", "/networks", [{"Name": "bridge"}])
    file = tmp_path / "compose.yaml"
    done = typed("migrate", "--from", "podman", "--compose", str(file))
    assert done.code == 0, done.err
    assert f"1 containers in {file}" in done.out and '"container_name": "web"' in file.read_text()


def test_whose_things_has_to_be_said(typed, engine):
    assert typed("migrate").code == 1
    assert typed("migrate", "--from", "lxc").code == 125


def test_a_file_with_something_else_stays(tmp_path: Path):
    file = tmp_path / "compose.yaml"
    report = MigrationReport()
    _save("new", file, 1, report)
    _save("new", file, 1, report)
    assert report.failures == 0 and file.stat().st_mode & 0o777 == 0o600
    file.write_text("mine")
    _save("new", file, 1, report)
    assert report.failures == 1 and file.read_text() == "mine"
    with pytest.raises(SystemFault, match="cannot write"):
        _save("new", tmp_path / "none" / "compose.yaml", 1, report)
