"""Volumes on disk: first contents whole or not at all, trash, and mounts on a double of the kernel's."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from husk.errors import SystemFault
from husk.kernel.mount import MS_BIND, MS_RDONLY, MS_REC, MS_REMOUNT
from husk.storage.volumes import store as module
from husk.storage.volumes.store import MountCall, VolumeStore


@pytest.fixture
def store(tmp_path: Path) -> VolumeStore:
    return VolumeStore.open(tmp_path / "volumes", set())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    directory = tmp_path / "source"
    (directory / "sub").mkdir(parents=True)
    (directory / "sub/file").write_text("from the image")
    directory.chmod(0o711)
    return directory


def fill(store: VolumeStore, name: str, source: Path) -> None:
    descriptor = os.open(source, os.O_RDONLY | os.O_DIRECTORY)
    try:
        store.fill(name, descriptor)
    finally:
        os.close(descriptor)


def test_a_volume_is_made_once(store: VolumeStore) -> None:
    assert store.create("v") and not store.create("v")
    assert store.is_empty("v") and store.size("v") == 0
    assert stat.S_IMODE(store.data("v").stat().st_mode) == 0o755


def test_an_empty_volume_gets_the_content_and_the_look_of_the_directory(store: VolumeStore, source: Path) -> None:
    store.create("v")
    fill(store, "v", source)
    assert (store.data("v") / "sub/file").read_text() == "from the image"
    assert stat.S_IMODE(store.data("v").stat().st_mode) == 0o711
    assert os.listdir(store.data("v").parent) == ["_data"] and store.size("v") == len("from the image")


def test_a_volume_with_something_in_it_stays_as_it_is(store: VolumeStore, source: Path) -> None:
    store.create("v")
    (store.data("v") / "mine").write_text("")
    fill(store, "v", source)
    assert os.listdir(store.data("v")) == ["mine"]


def test_a_filling_that_was_cut_off_is_undone_and_one_that_was_complete_is_finished(
    store: VolumeStore, tmp_path: Path
) -> None:
    root = tmp_path / "volumes"
    for name in ("half", "whole"):
        store.create(name)
    (root / "half/_filling").mkdir()
    (root / "half/_filling/part").write_text("")
    (root / "whole/_filled").mkdir(mode=0o700)
    for name in ("one", "two"):
        (root / "whole/_filled" / name).write_text("first content")
    (store.data("whole") / "two").write_text("of a container")
    again = VolumeStore.open(root, {"half", "whole"})
    assert again.is_empty("half") and os.listdir(root / "half") == ["_data"]
    assert (again.data("whole") / "one").read_text() == "first content"
    assert (again.data("whole") / "two").read_text() == "of a container"
    assert stat.S_IMODE(again.data("whole").stat().st_mode) == 0o700
    assert os.listdir(root / "whole") == ["_data"]


def test_what_has_no_record_goes_and_what_cannot_be_put_right_keeps_nobody(
    store: VolumeStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "volumes"
    store.create("left")
    (root / "odd").write_text("a file")
    (root / "broken").mkdir()
    (root / "broken/_filled").mkdir()  # and no _data to move it into
    again = VolumeStore.open(root, {"broken"})
    assert sorted(os.listdir(root)) == [".trash", "broken"]
    assert "volume broken cannot be put right" in caplog.text
    again.empty_trash()
    assert os.listdir(root / ".trash") == []


def test_a_volume_is_out_of_sight_at_once_and_deleted_later(store: VolumeStore, tmp_path: Path) -> None:
    store.create("v")
    store.discard("v")
    store.discard("v")
    assert not store.data("v").exists() and len(os.listdir(tmp_path / "volumes/.trash")) == 1
    assert store.create("v"), "its name is free"
    store.empty_trash()
    assert os.listdir(tmp_path / "volumes/.trash") == []


class Mounts:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.places: list[str] = []
        self.calls: list[tuple[str, int, str]] = []
        self.fails: Callable[[int], OSError | None] = lambda flags: None
        monkeypatch.setattr(module, "mount", self.mount)
        monkeypatch.setattr(module, "unmount", self.unmount)
        monkeypatch.setattr(
            module, "mounts_below", lambda top: [p for p in self.places if (p + "/").startswith(top + "/")]
        )

    def mount(self, source: str, target: str, fstype: str, flags: int, data: str = "") -> None:
        if (error := self.fails(flags)) is not None:
            raise error
        self.calls.append((source, flags, data))
        if not flags & MS_REMOUNT and target not in self.places:
            self.places.append(target)

    def unmount(self, place: str, detach: bool) -> None:
        if place in self.places:
            self.places.remove(place)


@pytest.fixture
def mounts(monkeypatch: pytest.MonkeyPatch) -> Mounts:
    return Mounts(monkeypatch)


def test_a_volume_is_mounted_once_and_let_go(store: VolumeStore, mounts: Mounts) -> None:
    store.create("v")
    store.create("plain")
    call = MountCall("tmpfs", "tmpfs", 0, "size=1m")
    store.mount("v", call)
    store.mount("v", call)
    assert len(mounts.calls) == 1 and store.all_mounted() == {"v"}
    assert store.mounted("v") and not store.mounted("plain")
    store.unmount("v")
    store.unmount("v")
    assert store.all_mounted() == set()


def test_a_bind_takes_its_flags_when_it_is_mounted_again(store: VolumeStore, mounts: Mounts) -> None:
    store.create("v")
    store.mount("v", MountCall("/src", "none", MS_BIND | MS_REC | MS_RDONLY, propagation=1 << 18))
    assert [flags for _, flags, _ in mounts.calls] == [
        MS_BIND | MS_REC | MS_RDONLY, MS_REMOUNT | MS_BIND | MS_RDONLY, 1 << 18,
    ]  # fmt: skip


def test_what_fails_half_way_is_not_mounted_and_tells_no_password(store: VolumeStore, mounts: Mounts) -> None:
    store.create("v")
    mounts.fails = lambda flags: OSError(1, "Operation not permitted") if flags & MS_REMOUNT else None
    with pytest.raises(SystemFault, match="operation not permitted"):
        store.mount("v", MountCall("/src", "none", MS_BIND | MS_RDONLY))
    assert mounts.places == []
    mounts.fails = lambda flags: OSError(19, "No such device")
    with pytest.raises(SystemFault) as caught:
        store.mount("v", MountCall("//nas/x", "cifs", 0, "username=me,password=hunter2"))
    assert "kernel has no file system cifs" in caught.value.message
    assert "hunter2" not in caught.value.message and "username=me" in caught.value.message


def test_another_file_system_is_filled_in_place(store: VolumeStore, mounts: Mounts, source: Path) -> None:
    store.create("v")
    store.mount("v", MountCall("tmpfs", "tmpfs"))
    fill(store, "v", source)
    assert (store.data("v") / "sub/file").read_text() == "from the image"
