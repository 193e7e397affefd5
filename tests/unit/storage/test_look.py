"""One look at the root tells what a path names, or that a worker must look; it never tells what is outside."""

import os
import stat
from pathlib import Path

import pytest

from husk.storage.look import look
from husk.storage.workers.pack import describe


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "etc/deep").mkdir(parents=True)
    (root / "etc/hosts").write_text("hosts")
    (root / "etc/deep/file").write_text("content")
    (root / "data").mkdir()
    (root / "etc/link").symlink_to("deep")
    (root / "out").symlink_to(tmp_path)
    (root / "run").mkdir()
    (root / "var").mkdir()
    (root / "var/run").symlink_to("../run")
    os.mkfifo(root / "pipe")
    (tmp_path / "secret").write_text("secret")
    return root


@pytest.mark.parametrize("path", ["/etc/deep/file", "/etc/deep", "/etc/deep/", "/etc/deep/.", "/pipe", "/etc/hosts"])
def test_a_path_without_links_and_mounts_is_told_as_a_worker_tells_it(root: Path, path: str):
    found = look(root, ["/data"], path)
    assert found is not None
    assert found == describe(f"{root}{path}")


@pytest.mark.parametrize("mount_points", [[], ["/data", "/etc/hosts"]])
def test_what_is_mounted_in_a_directory_does_not_change_it(root: Path, mount_points: list[str]):
    found = look(root, mount_points, "/")
    assert found is not None
    assert (found.name, stat.S_ISDIR(found.mode)) == ("/", True)
    assert look(root, mount_points, "/etc") == describe(f"{root}/etc")


@pytest.mark.parametrize("path", ["/none", "/etc/none", "/none/deeper", "/data2"])
def test_a_path_that_is_not_there_is_missing(root: Path, path: str):
    with pytest.raises(FileNotFoundError):
        look(root, ["/data", "/not/yet/made"], path)


@pytest.mark.parametrize("path", ["/etc/link", "/etc/link/", "/etc/link/file", "/out", "/out/secret", "/var/run/x"])
def test_behind_a_link_a_worker_must_look(root: Path, path: str):
    assert look(root, [], path) is None


@pytest.mark.parametrize("path", ["/data", "/data/", "/data/x", "/not", "/not/yet", "/not/yet/made/x"])
def test_where_something_is_mounted_a_worker_must_look(root: Path, path: str):
    assert look(root, ["/data/", "/not/yet/made"], path) is None


@pytest.mark.parametrize("point", ["/var/run/socket", "/etc/link", "/out/secret"])
def test_a_mount_that_a_link_leads_elsewhere_may_be_anywhere(root: Path, point: str):
    assert look(root, [point], "/etc/hosts") is None


def test_what_no_directory_can_be_is_left_to_the_worker(root: Path):
    assert look(root, [], "/etc/hosts/x") is None
    assert look(root, [], "/etc/hosts/") is None
