import pytest

from husk.client.calls import Calls
from husk.client.client import Client
from tests.support.fake_engine import FakeEngine


@pytest.fixture
async def engine():
    engine = FakeEngine()
    yield engine
    await engine.close()


@pytest.fixture
async def calls(engine):
    calls = Calls(engine.dial)
    yield calls
    await calls.close()


@pytest.fixture
async def client(engine):
    client = Client(engine.dial)
    yield client
    await client.close()
