"""A daemon's own part, without an engine behind it: what its signals do, and whom it tells."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk import daemon as module
from husk.aio.tasks import Tasks
from husk.config import Config, TlsConfig
from husk.config.load import SettingsSource
from husk.daemon import Daemon, check
from husk.errors import Forbidden, HuskError, InvalidParameter
from tests.support.waiting import until_async


class NoEdge:
    def __init__(self, *_: object) -> None: ...


async def nothing() -> None: ...


async def hear(number: int) -> None:
    """Get a signal, and the turns of the loop in which it is handled."""
    os.kill(os.getpid(), number)
    for _ in range(10):
        await asyncio.sleep(0.001)


class FakeEngine:
    def __init__(self) -> None:
        self.reloaded: list[Config] = []
        self.refuses: HuskError | None = None
        self.closed = False

    def reload(self, config: Config) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.reloaded.append(config)


class Life:
    """A daemon that serves nobody, and all that it said."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
        self.directory = directory
        self.on_open: Callable[[], Awaitable[None]] = nothing
        self.engine = FakeEngine()
        self.served = asyncio.Event()
        self.config = Config(data_root=directory)
        self.next: Config | HuskError = self.config
        self.notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notified.bind(str(directory / "notify"))
        self.notified.settimeout(5)
        self.daemon = self.daemon_that_tells(str(directory / "notify"))
        monkeypatch.setattr("husk.composition.Engine.open", self.open)
        monkeypatch.setattr("husk.api.edge.server.serve", self.serve)
        monkeypatch.setattr("husk.api.edge.server.ApiEdge", NoEdge)
        monkeypatch.setattr(module, "raise_open_files", lambda: 1024)
        monkeypatch.setattr("gc.freeze", lambda: None)

    def daemon_that_tells(self, notify_socket: str) -> Daemon:
        return Daemon(self.config, cast(SettingsSource, SimpleNamespace(load=self.load)), notify_socket)

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """A daemon that has told that it is ready; it ends with the block, by a signal."""
        async with asyncio.timeout(20):
            running = Tasks().spawn(self.daemon.serve(), "a daemon", awaited=True)
            assert await asyncio.to_thread(self.heard) == "READY=1"
            yield
            os.kill(os.getpid(), signal.SIGTERM)
            await running

    def load(self) -> Config:
        if isinstance(self.next, HuskError):
            raise self.next
        return self.next

    @contextlib.asynccontextmanager
    async def open(self, config: Config, open_files: int, meanwhile: Callable[[], None]) -> AsyncIterator[FakeEngine]:
        meanwhile()
        await self.on_open()
        try:
            yield self.engine
        finally:
            self.engine.closed = True

    @contextlib.asynccontextmanager
    async def serve(self, *_: object) -> AsyncIterator[list[str]]:
        self.served.set()
        yield ["unix:///run/test.sock", "tcp://127.0.0.1:2375"]

    def heard(self) -> str:
        return self.notified.recv(100).decode()


@pytest.fixture
async def life(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Life]:
    made = Life(monkeypatch, tmp_path)
    yield made
    made.notified.close()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.remove_signal_handler(number)


async def test_it_tells_where_it_listens_and_ends_cleanly_at_a_signal(
    life: Life, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def end() -> None:
        await life.served.wait()
        os.kill(os.getpid(), signal.SIGTERM)

    async with asyncio.timeout(10):
        await asyncio.gather(life.daemon.serve(), end())
    said = capsys.readouterr().out
    assert "Husk listens on unix:///run/test.sock" in said and "export DOCKER_HOST=unix:///run/test.sock\n" in said
    assert (life.heard(), life.heard()) == ("READY=1", "STOPPING=1")
    assert life.engine.closed
    assert "listening on tcp://127.0.0.1:2375 without --tlsverify" in caplog.text


async def test_a_signal_before_it_listens_ends_it_as_well(life: Life) -> None:
    life.on_open = partial(hear, signal.SIGINT)
    async with asyncio.timeout(10):
        await life.daemon.serve()
    assert life.engine.closed and not life.served.is_set()


async def test_the_third_signal_waits_for_nothing(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)

    async def thrice() -> None:
        for _ in range(3):
            await hear(signal.SIGTERM)

    life.on_open = thrice
    async with asyncio.timeout(10):
        await life.daemon.serve()
    assert codes == [128 + signal.SIGTERM]


async def test_a_reload_takes_over_what_may_change(life: Life, caplog: pytest.LogCaptureFixture) -> None:
    life.next = Config(data_root=Path("/elsewhere"), labels=("a=1",))
    async with life.serving():
        os.kill(os.getpid(), signal.SIGHUP)
        await until_async(lambda: life.engine.reloaded, "it has read its settings")
    [taken] = life.engine.reloaded
    assert taken.labels == ("a=1",) and taken.data_root == life.config.data_root
    assert "need a restart of the daemon: data-root" in caplog.text


@pytest.mark.parametrize("by_engine", [False, True])
async def test_a_faulty_file_changes_nothing(life: Life, caplog: pytest.LogCaptureFixture, by_engine: bool) -> None:
    if by_engine:
        life.engine.refuses, life.next = InvalidParameter("no such runtime"), Config(labels=("a=1",))
    else:
        life.next = InvalidParameter("it is not JSON")
    async with life.serving():
        os.kill(os.getpid(), signal.SIGHUP)
        await until_async(lambda: "the configuration stays as it was" in caplog.text, "it has read its settings")
    assert life.engine.reloaded == []


@pytest.mark.parametrize("place", ["@nobody-listens-here", ""])
async def test_systemd_that_does_not_listen_is_no_reason_to_end(
    life: Life, caplog: pytest.LogCaptureFixture, place: str
) -> None:
    running = Tasks().spawn(life.daemon_that_tells(place).serve(), "a daemon", awaited=True)
    async with asyncio.timeout(20):
        await life.served.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        await running
    assert ("systemd cannot be told READY=1" in caplog.text) is bool(place)


def test_settings_are_checked_before_anything_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def source(config: Config) -> SettingsSource:
        return cast(SettingsSource, SimpleNamespace(load=lambda: config))

    check(source(Config()))
    missing = TlsConfig(verify=True, ca=tmp_path / "ca", cert=tmp_path / "cert", key=tmp_path / "key")
    with pytest.raises(HuskError):
        check(source(Config(tls=missing)))
    monkeypatch.setenv("DOCKER_MIN_API_VERSION", "nonsense")
    with pytest.raises(HuskError):
        check(source(Config()))


def test_without_root_nothing_is_touched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    config = Config(data_root=tmp_path / "data", exec_root=tmp_path / "run")
    with pytest.raises(Forbidden, match="the daemon needs root"):
        module.run(cast(SettingsSource, SimpleNamespace(load=lambda: config)))
    assert list(tmp_path.iterdir()) == []


async def test_missing_packages_of_traces_are_told_once_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delitem(sys.modules, "husk.observe.tracing.export", raising=False)
    monkeypatch.delattr("husk.observe.tracing.export", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    async with contextlib.AsyncExitStack() as parts:
        assert module.traces(cast(Any, FakeEngine()), parts) == []
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert 'pip install "husk[otel]"' in record.getMessage()
