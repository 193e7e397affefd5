"""Things that managers share, over a real port: for managers alone, sealed for the one that asks."""

import pytest

from husk.errors import Forbidden, SystemFault
from husk.swarm.port.enter import EnterHandlers, ManagerSecrets, enter
from husk.swarm.port.managers import Managers
from husk.swarm.port.messages import ENTER, EnterReply, EnterRequest
from husk.swarm.port.server import ClusterPort
from tests.support.cluster_port import PortedSwarm

GIVEN = ManagerSecrets(b"k" * 32, b"u" * 32, "192.0.2.2", b"root", b"certificate", ("192.0.2.1:2379",))


class FakeDesk:
    def __init__(self) -> None:
        self.asked: list[tuple[str, bytes]] = []

    async def enter(self, node: str, request: bytes) -> ManagerSecrets:
        self.asked.append((node, request))
        return GIVEN._replace(unlock_key=b"" if node == "open" else GIVEN.unlock_key)


async def test_only_managers_are_given_what_managers_share(swarm: PortedSwarm, port: ClusterPort) -> None:
    servicer = FakeDesk()
    EnterHandlers(servicer).register(port)
    swarm.roles |= {"second": "manager", "open": "manager", "w": "worker"}
    for node in ("second", "open"):
        identity = swarm.identity(node, "manager")
        managers = Managers([swarm.endpoint], identity)
        given = await enter(managers, identity, b"csr")
        assert given == GIVEN._replace(unlock_key=b"" if node == "open" else GIVEN.unlock_key)
        reply = await managers.unary(ENTER, EnterRequest(request=b"csr"), EnterReply)
        assert GIVEN.key not in reply.encode() and GIVEN.unlock_key not in reply.encode()
        with pytest.raises(SystemFault, match="not sealed for this node"):
            await enter(managers, swarm.identity(node, "manager"), b"csr")
        await managers.close()
    asked = len(servicer.asked)
    # A worker, one that only says that it is a manager, and a manager that was demoted.
    for node, role in (("w", "worker"), ("w", "manager"), ("gone", "manager")):
        identity = swarm.identity(node, role)  # type: ignore[arg-type]
        managers = Managers([swarm.endpoint], identity)
        with pytest.raises(Forbidden):
            await enter(managers, identity, b"csr")
        await managers.close()
    assert len(servicer.asked) == asked
