"""A network while the daemon runs: its record, its driver, and the running containers on it."""

from ipaddress import IPv4Address, IPv6Address

from husk.engine.model.container import Container
from husk.engine.model.network import Network
from husk.network.bridge import BridgeDriver


class LiveNetwork:
    def __init__(self, record: Network, driver: BridgeDriver | None = None) -> None:
        self.record = record
        self._driver = driver
        # By container id; a member is there from before it gets its address until after it gave it back.
        self.members: dict[str, Container] = {}
        # Names that stand for virtual addresses, which services have.
        self.services: dict[str, list[IPv4Address | IPv6Address]] = {}

    @property
    def bridged(self) -> bool:
        return self._driver is not None

    @property
    def driver(self) -> BridgeDriver:
        if self._driver is None:
            raise TypeError(f"network {self.record.name} has no bridge")
        return self._driver


class Roster:
    """The networks that exist, by name."""

    def __init__(self) -> None:
        self.by_name: dict[str, LiveNetwork] = {}

    @property
    def bridge(self) -> LiveNetwork | None:
        """The default network; None where the settings want none."""
        return self.by_name.get("bridge")
