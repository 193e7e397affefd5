"""Changes that a container made, from real overlay mounts over several layers."""

import os
import subprocess
from pathlib import Path

import pytest

from husk.kernel.mount import mount_overlay, unmount
from husk.storage.changes import ADDED, DELETED, MODIFIED, changes


def layer(directory: Path, *files: str) -> str:
    for name in files:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_text(name)
    return str(directory)


@pytest.fixture
def union(tmp_path: Path):
    """A function that runs a script in a union of two layers and tells the changes."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it mounts")
    for name in ("base", "top", "upper", "work", "merged"):
        (tmp_path / name).mkdir()
    merged = tmp_path / "merged"

    def run(script: str) -> dict[str, int]:
        lower = [str(tmp_path / "top"), str(tmp_path / "base")]
        mount_overlay(lower, str(tmp_path / "upper"), str(tmp_path / "work"), str(merged))
        try:
            subprocess.run(["sh", "-ec", script], cwd=merged, check=True)
            return dict(changes(str(tmp_path / "upper"), lower))
        finally:
            unmount(str(merged), detach=True)

    run.base = lambda *files: layer(tmp_path / "base", *files)  # type: ignore[attr-defined]
    run.top = lambda *files: layer(tmp_path / "top", *files)  # type: ignore[attr-defined]
    return run


def test_nothing(union):
    union.base("a")
    assert union("true") == {}


def test_added_changed_deleted(union):
    union.base("d/a", "d/b", "d/c")
    found = union("echo x >>d/a; rm d/b; echo n >d/n; mkdir -p new/deep; echo f >new/deep/f; ln -s a l")
    assert found == {
        "/d": MODIFIED, "/d/a": MODIFIED, "/d/b": DELETED, "/d/n": ADDED,
        "/l": ADDED, "/new": ADDED, "/new/deep": ADDED, "/new/deep/f": ADDED,
    }  # fmt: skip


def test_a_directory_that_was_only_touched_does_not_count(union):
    union.base("d/a")
    assert union("touch d/x; rm d/x") == {}
    assert union("chmod 700 d") == {"/d": MODIFIED}


def test_a_directory_that_was_made_anew_has_lost_what_was_in_it(union):
    union.base("d/sub/c", "d/x")
    union.top("d/y")
    assert union("rm -r d; mkdir d; echo n >d/n; echo x >d/x") == {
        "/d": MODIFIED, "/d/n": ADDED, "/d/sub": DELETED, "/d/x": MODIFIED, "/d/y": DELETED,
    }  # fmt: skip


def test_a_directory_in_a_links_place(union):
    base = union.base("real/f")
    os.symlink("real", base + "/link")
    assert union("rm link; mkdir link; echo n >link/n") == {"/link": MODIFIED, "/link/n": ADDED}


def test_what_a_layer_has_removed_was_not_there(union):
    union.base("gone/f", "hidden/f")
    top = union.top("hidden/g")
    os.mknod(top + "/gone", 0o020000, 0)
    os.setxattr(top + "/hidden", "trusted.overlay.opaque", b"y")
    assert union("mkdir gone; echo f >gone/f; echo f >hidden/f") == {
        "/gone": ADDED, "/gone/f": ADDED, "/hidden": MODIFIED, "/hidden/f": ADDED,
    }  # fmt: skip


def test_parents_come_before_what_is_in_them(union):
    union.base("a/b/c", "a-b")
    paths = list(union("echo x >>a/b/c; echo x >>a-b; mkdir a/new"))
    assert paths == ["/a", "/a/b", "/a/b/c", "/a/new", "/a-b"]
