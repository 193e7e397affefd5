"""Mounts beside a container's root, on a double of the mounts: all of them are found again and released."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from husk.errors import InvalidParameter, NotFound, SystemFault
from husk.runtime.assembly import staging
from husk.runtime.assembly.staging import StagedPart, stage, unstage


class Mounts:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.places: list[str] = []
        self.layers: list[list[str]] = []
        self.bound: list[str] = []
        self.fails: OSError | None = None
        monkeypatch.setattr(staging, "mount_overlay", self.overlay)
        monkeypatch.setattr(staging, "bind", self.bind)
        monkeypatch.setattr(staging, "unmount", lambda place, detach: self.places.remove(place))
        monkeypatch.setattr(staging, "mounts_below", lambda top: [p for p in self.places if p.startswith(top + "/")])

    def overlay(self, lower: Sequence[str], upper: str, work: str, merged: str) -> None:
        self.layers.append(list(lower))
        self.places.append(str(Path(merged).resolve()))

    def bind(self, source: str, target: str) -> None:
        if self.fails is not None:
            raise self.fails
        self.bound.append(os.readlink(source))
        self.places.append(str(Path(target).resolve()))


@pytest.fixture
def mounts(monkeypatch: pytest.MonkeyPatch) -> Mounts:
    return Mounts(monkeypatch)


def test_parts_are_mounted_at_their_numbers_and_released(mounts: Mounts, tmp_path: Path) -> None:
    (tmp_path / "volume/in").mkdir(parents=True)
    (tmp_path / "volume/file").write_text("")
    place = tmp_path / "staging"
    tree = str(tmp_path / "volume")
    stage(
        place,
        {
            0: StagedPart(layers=("/a", "/b")),
            2: StagedPart(tree=tree, subpath="in"),
            5: StagedPart(tree=tree, subpath="file"),
        },
    )
    assert mounts.layers == [["/a", "/b", str(place / "0.empty")]]
    assert mounts.bound == [f"{tree}/in", f"{tree}/file"]
    assert (place / "2").is_dir() and (place / "5").is_file()
    unstage(place)
    assert mounts.places == [] and not place.exists()
    unstage(place)


def test_a_part_of_an_image_is_bound_out_of_the_whole(
    mounts: Mounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overlay(lower: Sequence[str], upper: str, work: str, merged: str) -> None:
        Path(merged, "etc").mkdir()

    monkeypatch.setattr(staging, "mount_overlay", overlay)
    stage(tmp_path / "staging", {1: StagedPart(layers=("/a",), subpath="etc")})
    assert mounts.bound == [str(tmp_path / "staging/1.whole/etc")]


def test_what_is_staged_for_a_copy_stays_for_the_start(mounts: Mounts, tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    parts = {0: StagedPart(tree=str(tmp_path / "volume"))}
    stage(tmp_path / "staging", parts)
    stage(tmp_path / "staging", parts)
    assert len(mounts.bound) == 1
    mounts.places.clear()  # as after a start of the host
    stage(tmp_path / "staging", parts)
    assert len(mounts.bound) == 2


def test_a_link_that_stays_inside_is_followed(mounts: Mounts, tmp_path: Path) -> None:
    (tmp_path / "volume/etc/in").mkdir(parents=True)
    (tmp_path / "volume/link").symlink_to("etc/../etc/in")
    place, tree = tmp_path / "staging", str(tmp_path / "volume")
    stage(place, {0: StagedPart(tree=tree, subpath="link")})
    assert mounts.bound == [f"{tree}/etc/in"]


@pytest.mark.parametrize("leads", ["/", "/etc", "../../..", "etc/../../volume/etc"])
def test_a_link_that_leads_out_is_refused(mounts: Mounts, tmp_path: Path, leads: str) -> None:
    (tmp_path / "volume/etc").mkdir(parents=True)
    (tmp_path / "volume/link").symlink_to(leads)
    place, tree = tmp_path / "staging", tmp_path / "volume"
    for subpath in ("link", "link/etc", "link/.."):
        with pytest.raises(InvalidParameter, match="path concatenation escapes the base directory, base: "):
            stage(place, {0: StagedPart(tree=str(tree), subpath=subpath)})
    assert mounts.bound == []


def test_a_part_that_is_not_there_or_cannot_be_mounted(mounts: Mounts, tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    tree = str(tmp_path / "volume")
    with pytest.raises(NotFound, match=r"cannot access path .*/volume/nowhere: no such file or directory"):
        stage(tmp_path / "staging", {0: StagedPart(tree=tree, subpath="nowhere")})
    mounts.fails = OSError(1, "Operation not permitted")
    with pytest.raises(SystemFault, match=r"cannot mount .*: Operation not permitted"):
        stage(tmp_path / "staging", {0: StagedPart(tree=tree)})
    unstage(tmp_path / "staging")
    assert not (tmp_path / "staging").exists()
