"""The layer of mount points: what is in it, and that its directories look as those that it hides."""

import os
import stat
from pathlib import Path

import pytest

from husk.kernel.mount import OPAQUE_XATTR
from husk.runtime.assembly.mount_points import (
    DirectoryLook,
    MountPoints,
    dress,
    look_of,
    make_mount_points,
    open_directory,
)


@pytest.fixture
def points(tmp_path: Path) -> MountPoints:
    return MountPoints(tmp_path / "usual", tmp_path / "others")


def image(place: Path, *, modes: dict[str, int]) -> list[str]:
    place.mkdir()
    for name in modes:
        (place / name).mkdir(parents=True, exist_ok=True)
    for name, mode in modes.items():
        (place / name).chmod(mode)
    return [str(place)]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_the_runtime_mounts_things_on_is_made_once(tmp_path: Path) -> None:
    make_mount_points(tmp_path)
    make_mount_points(tmp_path)
    assert os.readlink(tmp_path / "etc/mtab") == "/proc/mounts" and (tmp_path / "dev/console").is_file()


def test_its_directories_have_the_modes_of_those_that_they_hide(points: MountPoints, tmp_path: Path) -> None:
    lower = image(tmp_path / "image", modes={"": 0o750, "etc": 0o711, "proc": 0o555, "dev/shm": 0o1777, "srv": 0o700})
    place = points.place(lower)
    assert not place.exists(), "who only looks makes nothing"
    layer = points.of(lower)
    assert layer == points.of(lower) == points.place(lower) == place
    assert [mode(layer / name) for name in ("", "etc", "proc", "dev/shm")] == [0o750, 0o711, 0o555, 0o1777]
    assert (layer / "etc/hosts").is_file() and not (layer / "srv").exists()
    assert os.listdir(tmp_path / "others") == [layer.name]


def test_what_is_usual_beside_what_is_not_stays_usual(points: MountPoints, tmp_path: Path) -> None:
    layer = points.of(image(tmp_path / "image", modes={"proc": 0o555, "sys": 0o555}))
    found = {name: mode(layer / name) for name in ("", "etc", "dev", "dev/pts", "proc")}
    assert found == {"": 0o755, "etc": 0o755, "dev": 0o755, "dev/pts": 0o755, "proc": 0o555}


def test_images_whose_directories_look_alike_share_one(points: MountPoints, tmp_path: Path) -> None:
    one = image(tmp_path / "one", modes={"etc": 0o700})
    other = image(tmp_path / "other", modes={"etc": 0o700, "srv": 0o711})
    third = image(tmp_path / "third", modes={"etc": 0o711})
    assert points.of(one) == points.of(other) != points.of(third)
    # What an earlier daemon has made is used again, and what it had not completed is made anew.
    (tmp_path / "others/new/etc").mkdir(parents=True)
    again = MountPoints(tmp_path / "usual", tmp_path / "others")
    assert again.of(one) == points.of(one)
    assert again.of(image(tmp_path / "fourth", modes={"etc": 0o500})).parent == tmp_path / "others"


def test_an_image_that_says_nothing_unusual_has_the_usual_one(points: MountPoints, tmp_path: Path) -> None:
    assert points.of([]) == points.place([]) == tmp_path / "usual"
    assert points.place(["/nowhere"]) == tmp_path / "usual"


def test_extended_attributes_are_part_of_the_look(tmp_path: Path) -> None:
    look = DirectoryLook(os.getuid(), os.getgid(), 0o2750, (("user.husk", b"x"),))
    try:
        dress(tmp_path, look)
    except OSError:
        pytest.skip("no extended attributes here")
    found = look_of(tmp_path)
    assert (found.mode, ("user.husk", b"x") in found.attributes) == (0o2750, True)


def test_the_topmost_layer_that_has_a_directory_shows_it(tmp_path: Path) -> None:
    upper = image(tmp_path / "a", modes={"etc": 0o700})
    lower = image(tmp_path / "b", modes={"etc": 0o711, "sys": 0o555})
    shown = {name: open_directory([*upper, *lower], name) for name in ("etc", "sys", "proc")}
    found = {name: stat.S_IMODE(os.fstat(fd).st_mode) for name, fd in shown.items() if fd is not None}
    for fd in filter(None, shown.values()):
        os.close(fd)
    assert found == {"etc": 0o700, "sys": 0o555}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_what_an_opaque_directory_hides_is_not_there(tmp_path: Path) -> None:
    upper, lower = image(tmp_path / "a", modes={"dev": 0o755}), image(tmp_path / "b", modes={"dev/shm": 0o1777})
    os.setxattr(tmp_path / "a/dev", OPAQUE_XATTR, b"y")
    assert open_directory([*upper, *lower], "dev/shm") is None
    fd = open_directory([*upper, *lower], "dev")
    assert fd is not None
    os.close(fd)
