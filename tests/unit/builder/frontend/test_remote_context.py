"""Contexts that are no directory of the client's."""

import gzip
import io
import tarfile
from types import SimpleNamespace
from typing import Any

import pytest

from husk.builder.frontend import options as frontend_options
from husk.builder.frontend.remote_context import find, git_context, is_archive, named
from husk.builder.graph.operations import Source
from husk.builder.solver.solver import Solver
from husk.errors import InvalidParameter
from tests.unit.builder.solver.solving import Memory, Watch, Worker

SESSION: Any = SimpleNamespace(id="s1")


def tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a"))
    return out.getvalue()


class Files:
    def __init__(self, data):
        self._data = data

    async def read(self, stack, path, most):
        assert path == "context"
        return self._data[:most]


async def found(data: Any = b"", **attributes: Any) -> Any:
    wanted = frontend_options.read({name.replace("__", ":"): value for name, value in attributes.items()})
    doubles: Any = (Worker(), Memory())
    files: Any = Files(data)
    watch: Any = Watch()
    return await find(wanted, Solver(*doubles), files, watch, SESSION)


async def test_a_directory_of_the_client():
    assert await found() is None


@pytest.mark.parametrize("data", [tar(), gzip.compress(tar(), mtime=0)], ids=["plain", "gzip"])
async def test_an_archive_is_unpacked(data):
    remote = await found(data, context="https://example.com/x", contextsubdir="sub")
    context = remote.context
    assert (context.source.identifier, context.archive, context.directory) == (
        "https://example.com/x",
        "context",
        "sub",
    )
    assert remote.dockerfile == ""


async def test_anything_else_is_a_dockerfile():
    remote = await found(b"FROM scratch", context="https://example.com/x")
    assert (remote.dockerfile, remote.context.archive) == ("context", "")


async def test_the_client_may_call_its_context_something_else():
    remote = await found(b"FROM scratch", contextkey="main", main="https://example.com/x")
    assert remote.context.source.identifier == "https://example.com/x"


async def test_a_repository():
    remote = await found(context="https://example.com/x.git#v1:d", **{"build-arg__BUILDKIT_CONTEXT_KEEP_GIT_DIR": "1"})
    source = remote.context.source
    assert source.identifier == "git://example.com/x.git#v1:d"
    assert source.attributes["git.keepgitdir"] == "true"
    assert "git.mtime" not in source.attributes
    remote = await found(context="github.com/a/b", **{"build-arg__SOURCE_DATE_EPOCH": "1"})
    assert remote.context.source.attributes["git.mtime"] == "commit"
    assert remote.context.source.attributes["git.fullurl"] == "https://github.com/a/b"


@pytest.mark.parametrize("text", ["ftp://example.com/x", "rubbish", "https://example.com/x.git?x=y"])
async def test_what_is_none_of_these(text):
    with pytest.raises(InvalidParameter):
        await found(context=text)


def test_named_contexts():
    assert named("https://example.com/x") == Source("https://example.com/x", {"http.filename": "context"})
    assert named("git@example.com:x.git") == git_context("git@example.com:x.git")
    assert named("docker-image://x") is None


def test_what_looks_like_an_archive():
    assert is_archive(tar()[:1024])
    assert is_archive(b"\x28\xb5\x2f\xfd")
    assert not is_archive(b"FROM scratch\n")
    assert not is_archive(b"")
