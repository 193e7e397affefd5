import pytest

from husk.engine.builder.dockerfile.errors import DockerfileError
from husk.engine.builder.dockerfile.git_refs import GitRef, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://host/a/b.git", GitRef(remote="https://host/a/b.git")),
        ("https://host/b.git#v1", GitRef(remote="https://host/b.git", ref="v1")),
        ("https://host/b.git#v1:sub/dir", GitRef(remote="https://host/b.git", ref="v1", directory="sub/dir")),
        ("https://host/b.git#:sub", GitRef(remote="https://host/b.git", directory="sub")),
        ("git://host/b#x", GitRef(remote="git://host/b", ref="x")),
        ("ssh://git@host/b", GitRef(remote="ssh://git@host/b")),
        ("git@host:a/b.git#x", GitRef(remote="git@host:a/b.git", ref="x")),
        ("github.com/a/b", GitRef(remote="https://github.com/a/b")),
        ("https://host/b.git?branch=main", GitRef(remote="https://host/b.git", ref="refs/heads/main")),
        ("https://host/b.git?tag=v1&subdir=d", GitRef(remote="https://host/b.git", ref="refs/tags/v1", directory="d")),
        ("https://host/b.git?commit=" + "a" * 40, GitRef(remote="https://host/b.git", checksum="a" * 40)),
        (
            "https://host/b.git?keep-git-dir=true&submodules=false",
            GitRef(remote="https://host/b.git", keep_git_dir=True, submodules=False),
        ),
    ],
)
def test_repositories(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize("text", ["a/b", "./x.git", "https://host/a.tar", "http://host", "git", "", "x@y", "C:\\x"])
def test_what_is_no_repository(text):
    assert parse(text) is None


@pytest.mark.parametrize(
    "text",
    ["https://host/b.git?x=y", "https://host/b.git?commit=zz", "https://host/b.git?branch=a#b"],
)
def test_repositories_that_make_no_sense(text):
    with pytest.raises(DockerfileError):
        parse(text)
