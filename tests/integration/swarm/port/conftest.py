from collections.abc import AsyncIterator

import pytest

from husk.swarm.port.server import ClusterPort
from tests.support.cluster_port import PortedSwarm


@pytest.fixture
async def swarm() -> PortedSwarm:
    return PortedSwarm()


@pytest.fixture
async def port(swarm: PortedSwarm) -> AsyncIterator[ClusterPort]:
    async with swarm.opened() as port:
        yield port
