import io
import tarfile
from typing import cast
from unittest.mock import Mock

import pytest

from husk.client.builds import BuildOptions, Builds, query, source
from husk.client.progress import BuildProgress
from husk.errors import BuildError, CommandFailed, InvalidParameter, NotFound


def test_nothing_said():
    assert query({}) == {}


def test_all_said():
    options: BuildOptions = {
        "tag": ["a:1", "a:2"],
        "target": "t",
        "platform": "linux/arm64",
        "labels": {"l": "1"},
        "buildargs": {"A": "b", "C": None},
        "nocache": True,
        "pull": True,
        "cache_from": ["x"],
        "quiet": True,
        "network_mode": "none",
        "extra_hosts": {"h": "10.0.0.1"},
        "shmsize": "64m",
        "ulimits": {"nofile": (1, 2)},
        "container_limits": {"memory": "1g", "cpushares": 2},
        "cgroup_parent": "/x",
        "security_opt": ["seccomp=unconfined"],
    }
    assert query(options) == {
        "t": ["a:1", "a:2"],
        "target": "t",
        "platform": "linux/arm64",
        "labels": '{"l":"1"}',
        "buildargs": '{"A":"b","C":null}',
        "nocache": True,
        "pull": True,
        "cachefrom": '["x"]',
        "q": True,
        "networkmode": "none",
        "extrahosts": ["h:10.0.0.1"],
        "shmsize": 64 << 20,
        "ulimits": '[{"Name":"nofile","Soft":1,"Hard":2}]',
        "memory": 1 << 30,
        "cpushares": 2,
        "cgroupparent": "/x",
        "securityopt": '["seccomp=unconfined"]',
    }


def test_limits_that_are_not_known():
    with pytest.raises(InvalidParameter, match="knows no disk"):
        query({"container_limits": {"disk": 1}})


async def test_words_that_are_not_known(calls):
    options = cast(BuildOptions, {"sqash": True})
    with pytest.raises(InvalidParameter, match="a build knows no sqash"):
        _ = [line async for line in Builds(calls).building(options, {})]


def test_where_from(tmp_path):
    with pytest.raises(InvalidParameter, match="needs path= or fileobj="):
        source({})
    with pytest.raises(InvalidParameter, match="needs path= or fileobj="):
        source({"path": ".", "fileobj": b""})
    assert source({"path": "https://host/x.git", "dockerfile": "D"}) == (
        b"",
        {"remote": "https://host/x.git", "dockerfile": "D"},
    )
    assert source({"fileobj": b"tar", "custom_context": True, "dockerfile": "D"}) == (b"tar", {"dockerfile": "D"})
    _, place = source({"path": tmp_path})
    assert place == {"dockerfile": "Dockerfile"}


@pytest.mark.parametrize("given", ["FROM x", b"FROM x", io.BytesIO(b"FROM x")])
def test_a_dockerfile_in_hand(given):
    content, _ = source({"fileobj": given})
    assert isinstance(content, bytes)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        assert archive.getnames() == ["Dockerfile"]


async def test_a_context_in_pieces():
    async def pieces():
        yield b"tar"

    given = pieces()
    assert source({"fileobj": given, "custom_context": True}) == (given, {})
    with pytest.raises(InvalidParameter, match="cannot come in pieces"):
        source({"fileobj": given})


async def lines(*told, failure=None):
    for line in told:
        yield line
    if failure:
        raise failure


class Store:
    async def get(self, name):
        return name


async def test_the_image():
    assert await Builds(Mock()).built(Store(), lines(BuildProgress(text="x"), BuildProgress(image="i1"))) == "i1"


async def test_failures():
    with pytest.raises(BuildError) as failed:
        await Builds(Mock()).built(Store(), lines(BuildProgress(text="x"), failure=CommandFailed("no", 3)))
    assert (failed.value.code, failed.value.log) == (3, "x")
    with pytest.raises(BuildError, match="gone"):
        await Builds(Mock()).built(Store(), lines(BuildProgress(text="x"), failure=NotFound("gone")))
    with pytest.raises(NotFound):
        await Builds(Mock()).built(Store(), lines(failure=NotFound("gone")))
