"""Files that leave a container: names in archives, and files that go while they are packed."""

import io
import os

import pytest

from husk.storage.tar.members import TarWriter, tar_to
from husk.storage.workers.pack import XATTRS, add_all, base_name, describe, source
from tests.support.tars import files_of


@pytest.mark.parametrize(
    ("path", "name"), [("/a/b", "b"), ("/a/b/", "b"), ("/a/.", "."), ("/", "/"), ("//", "/"), ("a", "a")]
)
def test_the_last_element_of_a_path(path, name):
    assert base_name(path) == name


@pytest.mark.parametrize(
    ("path", "directory", "expected"),
    [
        ("/a/b", True, ("/a/b", "b")),
        ("/a/b/", True, ("/a/b/", "b")),
        ("/a/b/", False, ("/a/b", "b")),
        ("/a/b/.", True, ("/a/b/.", ".")),
        ("/", True, ("/", "")),
    ],
)
def test_what_is_walked_and_how_it_is_named(path, directory, expected):
    assert source(path, directory) == expected


def test_links_are_told_where_they_lead(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nowhere")
    assert describe(str(tmp_path / "link")).link == str(tmp_path / "file")
    assert describe(str(tmp_path / "dangling")).link == str(tmp_path / "nowhere")
    assert describe(str(tmp_path / "file")).link == ""


def test_a_directory_that_goes_between_the_look_and_the_walk(tmp_path, monkeypatch):
    top = tmp_path / "etc"
    top.mkdir()
    add = TarWriter.add

    def add_and_remove(self, name, path, status):
        add(self, name, path, status)
        os.rmdir(top)

    monkeypatch.setattr(TarWriter, "add", add_and_remove)
    out = io.BytesIO()
    with tar_to(out, XATTRS) as members:
        add_all(members, str(top), "etc")
    assert files_of(out.getvalue()) == {}
