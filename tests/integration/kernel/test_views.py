"""Views of the file systems: each in a process of its own, which takes them along when it ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import husk

BEGIN = "import os\nfrom husk.kernel import views\n"


def inside(code: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(husk.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + code], capture_output=True, text=True, env=environment, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text("x")
    return tmp_path


def test_what_is_mounted_in_a_view_is_seen_there_alone(tree: Path) -> None:
    said = inside(f"""
views.unshare()
target = os.open({str(tree / "place")!r}, os.O_PATH)
views.bind({str(tree / "other")!r}, target)
print(os.listdir({str(tree / "place")!r}))
""")
    assert said == ["['file']"] and os.listdir(tree / "place") == []


def test_a_restricted_mount_takes_no_writing(tree: Path) -> None:
    said = inside(f"""
views.unshare()
place = {str(tree / "place")!r}
views.bind({str(tree / "other")!r}, os.open(place, os.O_PATH))
views.restrict(os.open(place, os.O_PATH), readonly=True)
flags = os.statvfs(place).f_flag
print(all(flags & flag for flag in (os.ST_RDONLY, os.ST_NOSUID, os.ST_NODEV, os.ST_NOEXEC)))
open({str(tree / "other" / "new")!r}, "w")
""")
    assert said == ["True"] and (tree / "other/new").exists(), "what it was bound from is as it was"


def test_there_is_no_way_back_from_a_pivot(tree: Path) -> None:
    said = inside(f"""
views.unshare()
views.bind({str(tree / "other")!r}, os.open({str(tree / "other")!r}, os.O_PATH))
views.pivot({str(tree / "other")!r})
print(os.getcwd(), os.listdir("/"), os.listdir("/../.."))
""")
    assert said == ["/ ['file'] ['file']"]


def test_what_is_no_mount_point_cannot_be_pivoted_to(tree: Path) -> None:
    said = inside(f"""
views.unshare()
try:
    views.restrict(os.open({str(tree / "place")!r}, os.O_PATH))
except OSError as error:
    print(error.strerror)
""")
    assert said == ["Invalid argument"]
