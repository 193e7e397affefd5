import pytest

from husk.errors import Unavailable
from husk.swarm.port.addresses import PAUSE, AddressCalls, AddressHandlers
from husk.swarm.port.faults import TooMany
from husk.swarm.port.managers import Managers
from tests.support.cluster_port import PortedSwarm


class FakeDesk:
    def __init__(self) -> None:
        self.back: list[tuple[str, bytes]] = []
        self.away = False

    async def take(self, node: str, body: bytes) -> bytes:
        return node.encode() + b" has " + body

    async def seek(self, node: str, body: bytes) -> bytes:
        return node.encode() + b" seeks " + body

    async def announce(self, node: str, body: bytes) -> None:
        if self.away:
            raise Unavailable("the store is away")
        self.back.append((node, b"key " + body))

    async def give_back(self, node: str, body: bytes) -> None:
        self.back.append((node, body))


async def test_a_node_is_who_its_certificate_says() -> None:
    swarm, servicer = PortedSwarm(), FakeDesk()
    swarm.roles["w"] = "worker"
    async with swarm.opened() as port:
        AddressHandlers(servicer).register(port)
        managers = Managers([swarm.endpoint], swarm.identity("w", "worker"))
        calls = AddressCalls(managers)
        assert await calls.take(b"one") == b"w has one"
        assert await calls.seek(b"lan") == b"w seeks lan"
        await calls.give_back(b"one")
        assert servicer.back == [("w", b"one")]
        await managers.close()


async def test_a_node_does_not_say_its_key_without_end() -> None:
    swarm, servicer, now = PortedSwarm(), FakeDesk(), [0.0]
    swarm.roles["w"] = "worker"
    async with swarm.opened() as port:
        AddressHandlers(servicer, lambda: now[0]).register(port)
        managers = Managers([swarm.endpoint], swarm.identity("w", "worker"))
        calls = AddressCalls(managers)
        servicer.away = True
        with pytest.raises(Unavailable, match="the store is away"):
            await calls.announce(b"zero")
        servicer.away = False
        await calls.announce(b"one")
        with pytest.raises(TooMany):
            await calls.announce(b"two")
        now[0] += PAUSE
        await calls.announce(b"three")
        assert servicer.back == [("w", b"key one"), ("w", b"key three")]
        await managers.close()
