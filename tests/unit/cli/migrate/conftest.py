"""Two engines that answer as the test says, and what was told of the way of things between them."""

from collections.abc import AsyncIterator

import pytest

from husk.cli.migrate.report import MigrationReport
from husk.client.client import Client
from tests.support.fake_engine import FakeEngine


class Engines:
    def __init__(self) -> None:
        self.there, self.here = FakeEngine(), FakeEngine()
        self.source, self.target = Client(self.there.dial), Client(self.here.dial)
        self.report = MigrationReport()


@pytest.fixture
async def engines() -> AsyncIterator[Engines]:
    both = Engines()
    yield both
    for client in (both.source, both.target):
        await client.close()
    for engine in (both.there, both.here):
        await engine.close()
