import re

import pytest
from msgspec import structs

from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.git_refs import GitRef, host_of, is_ssh, parse, read, source_of
from husk.builder.graph.operations import Source


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
        ("github.com/a/b", GitRef(remote="https://github.com/a/b", like_a_path=True)),
        ("https://host/b.git#:../../etc", GitRef(remote="https://host/b.git", directory="etc")),
        ("https://host/b.git?mtime=commit", GitRef(remote="https://host/b.git", mtime="commit")),
        ("https://host/b.git?ref=v1#v1", GitRef(remote="https://host/b.git", ref="v1")),
        ("https://host/b.git?tag=refs/tags/v1", GitRef(remote="https://host/b.git", ref="refs/tags/v1")),
        (
            "https://host/b.git?fetch-by-commit&commit=" + "a" * 40,
            GitRef(remote="https://host/b.git", checksum="a" * 40, fetch_by_commit=True),
        ),
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
    ("text", "why"),
    [
        ("https://host/b.git?x=y", 'unexpected query "x"'),
        ("https://host/b.git?branch=a#b", 'ref conflicts: "b" vs "refs/heads/a"'),
        ("https://host/b.git?branch=a&tag=b", "branch conflicts with tag"),
        ("https://host/b.git?ref=a&ref=b", 'query "ref" has multiple values'),
        ("https://host/b.git?ref=", 'query "ref" has no value'),
        ("https://host/b.git?submodules=maybe", 'invalid submodules value: "maybe"'),
        ("https://host/b.git?mtime=never", "invalid mtime value"),
        ("https://host/b.git?subdir=a#:b", 'subdir conflicts: "b" vs "a"'),
    ],
)
def test_repositories_that_make_no_sense(text, why):
    with pytest.raises(DockerfileError, match=re.escape(why)):
        parse(text)


@pytest.mark.parametrize(
    ("repository", "identifier"),
    [
        (GitRef(remote="https://me:pw@host:1/a/b.git", ref="x", directory="d"), "git://host:1/a/b.git#x:d"),
        (GitRef(remote="git@host:a/b.git", keep_git_dir=True), "git://host/a/b.git"),
        (GitRef(remote="git://host/b", directory="d", submodules=False, mtime="commit"), "git://host/b#:d"),
        (GitRef(remote="ssh://git@host/b", checksum="abc", fetch_by_commit=True), "git://host/b"),
    ],
)
def test_sources_and_back(repository, identifier):
    source = source_of(repository)
    assert source.identifier == identifier
    assert ("git.mountsshsock" in source.attributes) == is_ssh(repository.remote)
    found = read(source)
    assert structs.replace(found, keep_git_dir=found.keep_git_dir or None) == repository


def test_sources_of_others():
    assert read(Source("git://host/b.git#v1:../x")) == GitRef(
        remote="https://host/b.git", ref="v1", directory="x", keep_git_dir=False
    )
    assert host_of("git@host:a/b") == host_of("https://me@host/a") == "host"
