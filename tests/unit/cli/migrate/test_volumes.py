"""Volumes: copied once, gone on with where a run broke, and never over what was here."""

import os
from pathlib import Path

import pytest

from husk.cli.migrate.volumes import LABEL, VolumeMarks, bring_volumes
from tests.support.programs import WrittenPrograms

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: what copies makes a view of its own")


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("there", "here"):
        (tmp_path / name).mkdir()
    (tmp_path / "there/file").write_text("content")
    return tmp_path / "there", tmp_path / "here"


class NotedMarks(VolumeMarks):
    """Marks on directories without root."""

    def __init__(self) -> None:
        self.places: set[str] = set()

    def set(self, place: str) -> None:
        self.places.add(place)

    def has(self, place: str) -> bool:
        return place in self.places


@pytest.fixture
def marks() -> NotedMarks:
    return NotedMarks()


def known(engines, place: Path, **more: object) -> None:
    engines.there.answers(
        "GET", "/volumes", {"Volumes": [{"Name": "v", "Driver": "local", "Mountpoint": str(place), **more}]}
    )


@AS_ROOT
async def test_a_new_one(engines, places, marks, capfd) -> None:
    there, here = places
    known(engines, there, Labels={"a": "b"})
    engines.here.answers("POST", "/volumes/create", {"Name": "v", "Mountpoint": str(here)})
    await bring_volumes(engines.source, engines.target, "docker", {"v": "web"}, engines.report, marks)
    assert (here / "file").read_text() == "content" and marks.places == {str(here)}
    assert engines.here.last("POST", "/volumes/create").document["Labels"] == {"a": "b", LABEL: "docker"}
    assert "volume v, while web was running" in capfd.readouterr().out


@AS_ROOT
@pytest.mark.parametrize(
    ("labels", "done", "copied"),
    [({}, False, False), ({LABEL: "docker"}, True, False), ({LABEL: "docker"}, False, True)],
)
async def test_one_that_is_here(engines, places, marks, labels, done, copied) -> None:
    there, here = places
    known(engines, there)
    if done:
        marks.set(str(here))
    engines.here.answers("GET", "/volumes/v", {"Name": "v", "Mountpoint": str(here), "Labels": labels})
    await bring_volumes(engines.source, engines.target, "docker", {}, engines.report, marks)
    assert (here / "file").exists() == copied and engines.report.failures == 0


async def test_those_of_other_drivers_are_left_out(engines, places, marks, capfd) -> None:
    known(engines, places[0], Options={"type": "nfs"})
    await bring_volumes(engines.source, engines.target, "docker", {}, engines.report, marks)
    assert "left out" in capfd.readouterr().out


async def test_one_of_another_host(engines, places, marks, capfd) -> None:
    known(engines, places[0] / "none")
    engines.here.answers("POST", "/volumes/create", {"Name": "v", "Mountpoint": str(places[1])})
    await bring_volumes(engines.source, engines.target, "docker", {}, engines.report, marks)
    assert "volumes come over on one host alone" in capfd.readouterr().out and engines.report.failures == 1


@AS_ROOT
async def test_a_copy_that_fails(engines, places, marks, capfd, tmp_path, monkeypatch) -> None:
    programs = WrittenPrograms(tmp_path / "programs")
    programs.add("sync", script="echo Input/output error >&2; exit 1")
    monkeypatch.setenv("PATH", str(programs.directory))
    there, here = places
    known(engines, there)
    engines.here.answers("POST", "/volumes/create", {"Name": "v", "Mountpoint": str(here)})
    await bring_volumes(engines.source, engines.target, "docker", {}, engines.report, marks)
    assert (
        engines.report.failures == 1
        and "volume v: FAILED: Input/output error" in capfd.readouterr().out
        and not marks.places
    )
