import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from husk import pytest_plugin
from husk.aio.loop_thread import ThreadBound
from husk.client.container import Container
from husk.errors import Unavailable
from husk.pytest_plugin import Service, TestEngine

SOURCES = Path(__file__).parents[2] / "src"


def test_nothing_of_an_engine_is_loaded_before_a_test_asks_for_it():
    code = """
import sys, husk.pytest_plugin
loaded = [name for name in sys.modules if name.startswith(("husk.engine", "husk.client", "husk.api", "uvloop"))]
sys.exit(str(loaded) if loaded else 0)
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(SOURCES)})


NOBODY: Any = None


class Box(Container):
    def __init__(self, told: list[str]) -> None:
        super().__init__(NOBODY, {"Id": "c1", "Name": "/box"})
        self._told = told

    async def reload(self) -> None:
        self._told.append("reloaded")

    def logs(self, **how: Any) -> Any:
        async def written() -> bytes:
            return b"starting\nfailed to bind\n"

        return written()


class Double:
    """An engine whose containers note what happens to them."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def run(self, image: str, command: str, **spec: Any) -> str:
        return f"{image} {command} {spec}"

    @asynccontextmanager
    async def container(self, image: str, command: str, **spec: Any) -> AsyncIterator[Any]:
        box = Box(self.told)
        self.told.append(f"started {image} {command} {spec}")
        yield box
        self.told.append("gone")


@pytest.fixture
def double():
    return Double()


@pytest.fixture
def engine(double):
    @asynccontextmanager
    async def opened() -> AsyncIterator[Any]:
        yield double

    kept: ThreadBound[Any] = ThreadBound(opened(), "test")
    kept.start()
    yield TestEngine(kept)
    kept.close()


def test_a_run_without_a_loop(engine):
    assert engine.run("busybox", "true", memory="1m") == "busybox true {'memory': '1m'}"


def test_a_container_is_there_for_a_block(engine, double):
    with engine.container("busybox", "httpd", ready={}, network="x") as service:
        assert (service.id, service.name) == ("c1", "box")
        assert double.told == ["started busybox httpd {'network': 'x'}", "reloaded"]
    assert double.told[-1] == "gone"


def test_a_container_that_is_not_ready_fails_with_its_words_and_no_traceback(engine, double, monkeypatch):
    async def never(box, **ready):
        raise Unavailable("container box ended with exit code 1 before it was ready. It wrote:\nno such database")

    monkeypatch.setattr("husk.client.readiness.until_ready", never)
    started = engine.container("postgres", None, ready={})
    with (
        pytest.raises(pytest.fail.Exception, match=r"postgres: container box ended .*\nno such database") as raised,
        started,
    ):
        pass
    assert raised.value.pytrace is False


def test_a_test_that_fails_shows_the_last_lines_of_its_container(engine):
    with pytest.raises(AssertionError) as raised, engine.container("busybox", None, ready={}):
        raise AssertionError("no")
    assert raised.value.__notes__ == ["container box wrote at last:\nstarting\nfailed to bind"]


def test_a_terminal_obeys_nothing_that_a_container_wrote(engine, monkeypatch):
    async def logs(self: Any, **_: Any) -> bytes:
        return b"\x1b]0;renamed\x07"

    monkeypatch.setattr(Box, "logs", logs)
    with pytest.raises(AssertionError) as raised, engine.container("busybox", None, ready={}):
        raise AssertionError("no")
    assert raised.value.__notes__ == ["container box wrote at last:\n\\x1b]0;renamed\\x07"]


def test_ports_of_the_host(engine):
    ports = {"80/tcp": [{"HostIp": "0.0.0.0", "HostPort": "49153"}], "53/udp": None}
    box = Container(NOBODY, {"Id": "c1", "NetworkSettings": {"Ports": ports}})
    service = Service(engine, box)
    assert service.port(80) == service.port("80/tcp") == 49153
    with pytest.raises(LookupError, match="not published"):
        service.port("53/udp")


def test_where_the_engine_is(monkeypatch, pytestconfig):
    monkeypatch.setattr("husk.client.client.connect", lambda address: address)
    monkeypatch.setattr("husk.library.embedded.Engine.open", lambda **settings: settings)
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    class Config:
        def getoption(self, name: str) -> str:
            return "/data"

    config: Any = Config()
    opening: Any = pytest_plugin._opening
    for name in ("HUSK_HOST", "DOCKER_HOST", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    assert opening(config) == {"data_root": "/data"}
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw1")
    assert opening(config) == {"data_root": "/data-gw1"}
    monkeypatch.setenv("DOCKER_HOST", "unix:///d")
    assert opening(config) == "unix:///d"
