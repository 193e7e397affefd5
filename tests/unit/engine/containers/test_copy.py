"""Reading of a client's path into a container."""

import pytest

from husk.engine.containers.copy import clean_path
from husk.errors import InvalidParameter
from husk.storage.workers.pack import base_name, source


@pytest.mark.parametrize(
    ("path", "clean"),
    [
        ("/", "/"),
        (".", "/."),
        ("/.", "/."),
        ("data", "/data"),
        ("//data//x", "/data/x"),
        ("/data/", "/data/"),
        ("/data/.", "/data/."),
        ("/data/./", "/data/."),
        ("/data/..", "/"),
        ("../../etc", "/etc"),
        ("/a/../../b/", "/b/"),
    ],
)
def test_clean_path(path: str, clean: str):
    assert clean_path(path) == clean


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_refused(path: str):
    with pytest.raises(InvalidParameter):
        clean_path(path)


@pytest.mark.parametrize(("path", "name"), [("/", "/"), ("/.", "."), ("/a/b", "b"), ("/a/b/", "b"), ("/a/b/.", ".")])
def test_base_name(path: str, name: str):
    assert base_name(path) == name


def test_the_root_has_no_name_in_its_archive():
    assert source("/", True) == ("/", "")
    assert source("/a/b", True) == ("/a/b", "b")
