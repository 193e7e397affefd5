from husk.cluster.port.addresses import AddressCalls, AddressHandlers
from husk.cluster.port.managers import Managers
from tests.support.cluster_port import PortedSwarm


class FakeDesk:
    def __init__(self) -> None:
        self.back: list[tuple[str, bytes]] = []

    async def take(self, node: str, body: bytes) -> bytes:
        return node.encode() + b" has " + body

    async def seek(self, node: str, body: bytes) -> bytes:
        return node.encode() + b" seeks " + body

    async def give_back(self, node: str, body: bytes) -> None:
        self.back.append((node, body))


async def test_a_node_is_who_its_certificate_says() -> None:
    swarm, desk = PortedSwarm(), FakeDesk()
    swarm.roles["w"] = "worker"
    async with swarm.opened() as port:
        AddressHandlers(desk).register(port)
        managers = Managers([swarm.endpoint], swarm.identity("w", "worker"))
        calls = AddressCalls(managers)
        assert await calls.take(b"one") == b"w has one"
        assert await calls.seek(b"lan") == b"w seeks lan"
        await calls.give_back(b"one")
        assert desk.back == [("w", b"one")]
        await managers.close()
