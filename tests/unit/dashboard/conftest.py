"""A dashboard of an engine that answers as the test says, and a browser that has signed in."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from types import CodeType

import pytest
from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket

from husk.client.client import Client
from husk.dashboard import rendering
from husk.dashboard.server import Dashboard, serve
from husk.dashboard.site import DashboardSettings
from tests.support.dashboard import Asker, Browser
from tests.support.fake_engine import FakeEngine


class Compiled(BytecodeCache):
    """Templates as they were compiled for an earlier test: that takes longer than all else in one."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], CodeType | None] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._found.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._found[bucket.key, bucket.checksum] = bucket.code


@pytest.fixture(scope="session", autouse=True)
def compiled_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rendering, "Environment", partial(Environment, bytecode_cache=Compiled()))
        yield


@pytest.fixture
async def engine() -> AsyncIterator[FakeEngine]:
    found = FakeEngine()
    found.answers("GET", "/containers/json", [])
    yield found
    await found.close()


@pytest.fixture
async def client(engine: FakeEngine) -> AsyncIterator[Client]:
    found = Client(engine.dial)
    yield found
    await found.close()


@pytest.fixture
async def dashboard(client: Client) -> AsyncIterator[Dashboard]:
    async with serve(client, DashboardSettings(address="127.0.0.1:0")) as found:
        yield found


@pytest.fixture
async def asker(dashboard: Dashboard) -> Asker:
    found = Browser(dashboard.site.link())
    assert (await asyncio.to_thread(found.sign_in)).status == 200
    return Asker(found)
