"""Fixtures for tests against real services: containers without a daemon. `pip install husk[pytest]` brings it.

    def test_it(husk_container):
        with husk_container("redis:7", wait_for_port=6379) as redis:
            client = connect(redis.ip, 6379)

`husk_engine` is one engine for the whole run. It is that of the daemon at HUSK_HOST or DOCKER_HOST, if one of them is
set; else an engine inside pytest's own process (root is needed), on the data root of `--husk-data-root`. The images
that it has pulled stay there for the next run. Workers of pytest-xdist have a data root each.

Nothing of the engine is loaded before a test asks for a fixture.
"""

import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Unpack

import pytest

import husk
from husk.errors import HuskError
from husk.text.terminals import visible

if TYPE_CHECKING:
    from husk.aio.loop_thread import ThreadBound
    from husk.client.client import Client
    from husk.client.container import Container
    from husk.client.execs import Result
    from husk.client.keywords import ContainerOptions, RunOptions
    from husk.client.spec import Command

T = TypeVar("T")

DATA_ROOT = "/var/lib/husk-pytest"
# Of what a container wrote a failure shows so much, unless it takes too many seconds to come.
_LINES, _LETTERS, _PATIENCE = 20, 4000, 10


class TestEngine:
    """The engine of a run of tests, for tests with and without an event loop of their own."""

    __test__ = False

    def __init__(self, kept: "ThreadBound[Client]") -> None:
        self._kept = kept
        self._client = kept.opened.result()

    def call(self, work: Callable[["Client"], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine of the engine and wait for it: `husk_engine.call(lambda engine: engine.images.list())`."""
        return self._kept.submit(work(self._client)).result()

    def run(self, image: str, command: "Command" = None, **spec: "Unpack[RunOptions]") -> "Result":
        """Run a container to its end; as `Client.run`."""
        return self.call(lambda engine: engine.run(image, command, **spec))

    def client(self) -> "AbstractAsyncContextManager[Client]":
        """The same engine for the event loop of an async test."""
        return self._client.connect()

    @contextmanager
    def container(
        self,
        image: str,
        command: "Command" = None,
        *,
        ready: Mapping[str, Any],
        **spec: "Unpack[ContainerOptions]",
    ) -> Iterator["Service"]:
        # A door: the client, which a run of tests without an engine does without.
        from husk.client.readiness import until_ready

        @asynccontextmanager
        async def started() -> AsyncIterator["Container"]:
            async with self._client.container(image, command, **spec) as box:
                await until_ready(box, **ready)
                await box.reload()
                yield box

        __tracebackhide__ = True
        context = started()
        try:
            box = self._kept.submit(context.__aenter__()).result()
        except HuskError as error:
            # The reason and the container's last lines are all that helps: how we came to hear of it is not.
            pytest.fail(f"{image}: {visible(error.message)}", pytrace=False)
        try:
            yield Service(self, box)
        except Exception as error:
            error.add_note(self._last_lines(box))
            raise
        finally:
            self._kept.submit(context.__aexit__(None, None, None)).result()

    def _last_lines(self, box: "Container") -> str:
        async def written() -> str:
            return (await box.logs(tail=_LINES)).decode(errors="replace").strip()[-_LETTERS:]

        try:
            said = self._kept.submit(written()).result(_PATIENCE)
        except Exception as error:
            said = f"({error})"
        return f"container {box.name} wrote at last:\n{visible(said) or '(nothing)'}"


class Service:
    """A container that is ready. `box` is it for whoever wants more: `service.call(lambda box: box.pause())`."""

    def __init__(self, engine: TestEngine, box: "Container") -> None:
        self._engine = engine
        self.box = box

    @property
    def id(self) -> str:
        return self.box.id

    @property
    def name(self) -> str:
        return self.box.name

    @property
    def ip(self) -> str:
        """Its address, which the host reaches without published ports."""
        return self.box.ip

    def port(self, port: int | str) -> int:
        """The port of the host that leads to one of its ports, which `ports=` published."""
        found = self.box.ports.get(f"{port}" if "/" in str(port) else f"{port}/tcp")
        if not found:
            raise LookupError(f"port {port} is not published: start it with ports={{{port}: None}}")
        return found[0][1]

    def exec(self, command: "Command", **options: Any) -> "Result":
        """Run another process in it to its end."""

        async def result(_: object) -> "Result":
            return await self.box.exec(command, **options)

        return self._engine.call(result)

    def logs(self) -> str:
        """Return all that the container has written so far."""

        async def whole(_: object) -> bytes:
            return await self.box.logs()

        return self._engine.call(whole).decode(errors="replace")

    def put(self, path: str, data: bytes | str | Path) -> None:
        """Write a file into it."""
        self.call(lambda box: box.put(path, data))

    def get(self, path: str) -> bytes:
        """The content of a file in it."""
        return self.call(lambda box: box.get(path))

    def call(self, work: Callable[["Container"], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine of the container and wait for it: `service.call(lambda box: box.pause())`."""
        return self._engine.call(lambda _: work(self.box))


class StartService(Protocol):
    """The type of `husk_container`: starts a container and waits until it is ready; at the end of the block it is gone.

    Ready is what `wait_for_port` (it accepts connections), `wait_for_log` (a line matches), `wait_for_exec` (a command
    ends with 0) and `wait_for_health` (its health test says so) ask for, within `timeout` seconds. Other keywords are
    those of `Client.container`.
    """

    def __call__(
        self,
        image: str,
        command: "Command" = None,
        *,
        wait_for_port: int | None = None,
        wait_for_log: str = "",
        wait_for_exec: "Command" = None,
        wait_for_health: bool = False,
        timeout: float = 60.0,
        **spec: "Unpack[ContainerOptions]",
    ) -> AbstractContextManager[Service]: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("husk")
    group.addoption(
        "--husk-data-root", default=DATA_ROOT, help=f"where images of husk_engine are kept (default: {DATA_ROOT})"
    )


@pytest.fixture(scope="session")
def husk_engine(request: pytest.FixtureRequest) -> Iterator[TestEngine]:
    """One engine for all tests of the run."""
    # A door: the event loop of an engine, which other runs do without.
    from husk.aio.loop_thread import ThreadBound

    kept = ThreadBound(_opening(request.config), "husk-pytest")
    kept.start()
    engine = TestEngine(kept)
    try:
        yield engine
    finally:
        kept.close()


def _opening(config: pytest.Config) -> "AbstractAsyncContextManager[Client]":
    if address := os.environ.get("HUSK_HOST") or os.environ.get("DOCKER_HOST"):
        return husk.connect(address)
    if os.geteuid() != 0:
        pytest.skip("an engine needs root; a daemon's is used where HUSK_HOST or DOCKER_HOST names it")
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    root = config.getoption("--husk-data-root")
    return husk.Engine.open(data_root=os.path.abspath(f"{root}-{worker}" if worker else root))


@pytest.fixture(scope="session")
def husk_container(husk_engine: TestEngine) -> StartService:
    """Starts containers that are ready: `with husk_container("redis:7", wait_for_port=6379) as redis: …`."""

    def start(
        image: str,
        command: "Command" = None,
        *,
        wait_for_port: int | None = None,
        wait_for_log: str = "",
        wait_for_exec: "Command" = None,
        wait_for_health: bool = False,
        timeout: float = 60.0,
        **spec: "Unpack[ContainerOptions]",
    ) -> AbstractContextManager[Service]:
        ready = {"port": wait_for_port, "log": wait_for_log, "exec": wait_for_exec, "health": wait_for_health}
        return husk_engine.container(image, command, ready={**ready, "timeout": timeout}, **spec)

    return start
