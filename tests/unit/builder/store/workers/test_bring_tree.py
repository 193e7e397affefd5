"""All of a directory into another one, by a process that sees nothing else."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it makes a view of its own")

# What a container would do in the middle of a copy, at the worst moment there is.
HOSTILE = """
import os, sys
from husk.builder.store.workers import bring_tree
true_stat = os.stat
def stat(path, *words, **more):
    found = true_stat(path, *words, **more)
    if path == "exchanged":
        os.rename("{source}/exchanged", "{source}/away")
        os.symlink("{outside}", "{source}/exchanged")
    return found
if {early}:
    os.stat = stat
    bring_tree.bring("{source}", "{target}")
else:
    bring_tree.enter("{source}", "{target}")
    print(sorted(os.listdir("/")), os.path.exists("/from/exchanged"), os.access("/from", os.W_OK))
    os.symlink("{outside}", "/to/link")
    print(os.path.exists("/to/link/secret"), os.path.exists("/proc/self"))
"""


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("there", "here", "outside"):
        (tmp_path / name).mkdir()
    (tmp_path / "outside/secret").write_text("the host's")
    return tmp_path / "there", tmp_path / "here"


def bring(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "husk.builder.store.workers.bring_tree", str(source), str(target)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def hostile(places: tuple[Path, Path], early: bool) -> subprocess.CompletedProcess[str]:
    source, target = places
    script = HOSTILE.format(source=source, target=target, outside=source.parent / "outside", early=early)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)


def test_everything_comes_as_it_is(places: tuple[Path, Path]) -> None:
    source, target = places
    (source / "deep/er").mkdir(parents=True)
    (source / "deep").chmod(0o2751)
    (source / "mine").write_text("content")
    os.chown(source / "mine", 1234, 4321)
    (source / "mine").chmod(0o4751)
    os.utime(source / "mine", ns=(10**18, 10**18 + 1))
    os.link(source / "mine", source / "deep/er/same")
    (source / "link").symlink_to(f"{source.parent}/outside/secret")
    os.mkfifo(source / "pipe", 0o640)
    with (source / "holes").open("wb") as holes:
        holes.truncate(1 << 30)
    os.chown(source, 7, 8)
    source.chmod(0o1770)
    os.utime(source, ns=(10**18, 10**18 + 2))
    done = bring(source, target)
    assert (done.returncode, done.stderr) == (0, "")
    mine = (target / "mine").stat()
    assert (target / "mine").read_text() == "content"
    assert (mine.st_uid, mine.st_gid, stat.S_IMODE(mine.st_mode), mine.st_mtime_ns) == (1234, 4321, 0o4751, 10**18 + 1)
    assert (target / "deep/er/same").stat().st_ino == mine.st_ino
    assert os.readlink(target / "link") == f"{source.parent}/outside/secret"
    assert stat.S_ISFIFO((target / "pipe").stat().st_mode)
    assert (target / "holes").stat().st_size == 1 << 30 and (target / "holes").stat().st_blocks < 1000
    assert stat.S_IMODE((target / "deep").stat().st_mode) == 0o2751
    top = target.stat()
    assert (top.st_uid, top.st_gid, stat.S_IMODE(top.st_mode), top.st_mtime_ns) == (7, 8, 0o1770, 10**18 + 2)


def test_what_a_broken_run_has_left_is_written_again(places: tuple[Path, Path]) -> None:
    source, target = places
    (source / "file").write_text("whole")
    (source / "directory").mkdir()
    (target / "file").write_text("wh")
    (target / "directory").symlink_to(source.parent / "outside")
    assert bring(source, target).returncode == 0
    assert (target / "file").read_text() == "whole" and not (target / "directory").is_symlink()
    assert (source.parent / "outside/secret").read_text() == "the host's"


def test_it_sees_the_two_directories_and_nothing_else(places: tuple[Path, Path]) -> None:
    done = hostile(places, early=False)
    assert done.stdout == "['from', 'to'] False False\nFalse False\n", done.stderr


def test_a_directory_that_is_exchanged_for_a_link_leads_nowhere(places: tuple[Path, Path]) -> None:
    source, target = places
    (source / "exchanged").mkdir()
    done = hostile(places, early=True)
    assert done.returncode == 1 and "Not a directory" in done.stderr
    assert os.readlink(source / "exchanged") == str(source.parent / "outside")
    assert os.listdir(target / "exchanged") == []


def test_what_cannot_be_is_said(places: tuple[Path, Path]) -> None:
    done = bring(places[0] / "none", places[1])
    assert done.returncode == 1 and "No such file" in done.stderr
