import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from husk.client.execs import Result
from husk.errors import Unavailable
from husk.library.blocking import BlockingEngines


class Double:
    """An engine that echoes."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.cancelled = False

    async def run(self, image: str, command: str, **spec: Any) -> Result:
        if command == "fail":
            raise Unavailable("no")
        return Result(exit_code=0, stdout=f"{self.where} {image} {command} {spec}".encode(), stderr=b"")


class Doubles:
    def __init__(self) -> None:
        self.told: list[str] = []

    @asynccontextmanager
    async def connect(self, address: str) -> AsyncIterator[Double]:
        self.told.append(f"connect {address}")
        yield Double(address)
        self.told.append("closed")

    @asynccontextmanager
    async def own(self, data_root: Any) -> AsyncIterator[Double]:
        self.told.append(f"open {data_root or 'usual'}")
        yield Double("own")
        self.told.append("closed")


@pytest.fixture
def doubles(monkeypatch):
    for name in ("HUSK_HOST", "DOCKER_HOST"):
        monkeypatch.delenv(name, raising=False)
    return Doubles()


@pytest.fixture
def blocking(doubles, tmp_path):
    engines = BlockingEngines(doubles.connect, doubles.own, str(tmp_path / "no.sock"))
    yield engines
    engines.close()


def test_an_engine_of_the_process_stays_open_between_calls(doubles, blocking):
    assert blocking.run("busybox", "echo hi", memory="1m").stdout == b"own busybox echo hi {'memory': '1m'}"
    blocking.run("busybox", "echo hi")
    assert doubles.told == ["open usual"]
    blocking.close()
    assert doubles.told[1:] == ["closed"]


def test_variables_say_where_the_engine_is_unless_roots_are_given(doubles, blocking, monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", "tcp://b:1")
    blocking.run("busybox", "x")
    monkeypatch.setenv("HUSK_HOST", "unix:///a")
    blocking.run("busybox", "x")
    blocking.run("busybox", "x", data_root=tmp_path)
    assert doubles.told == ["connect tcp://b:1", "connect unix:///a", f"open {tmp_path}"]


def test_a_failure_is_that_of_the_call(doubles, blocking):
    with pytest.raises(Unavailable):
        blocking.run("busybox", "fail")
    assert blocking.run("busybox", "x").ok


async def test_a_running_loop_is_not_disturbed(doubles, blocking):
    ticks = asyncio.get_running_loop().create_task(asyncio.sleep(0, "tick"))
    assert blocking.run("busybox", "x").ok
    assert await ticks == "tick"


def test_a_process_that_was_forked_opens_its_own(doubles, tmp_path):
    processes = iter([1, 1])
    engines = BlockingEngines(
        doubles.connect, doubles.own, str(tmp_path / "no.sock"), process=lambda: next(processes, 2)
    )
    engines.run("busybox", "x")
    engines.run("busybox", "x")
    assert doubles.told == ["open usual"] * 2
    engines.close()
