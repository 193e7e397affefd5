"""Which networks are there, and how does a container come on and off them?"""

import secrets
from collections.abc import Iterable

import msgspec

from husk.config import Config
from husk.engine.clock import now_ns, rfc3339
from husk.engine.containers.model import Container, Endpoint
from husk.engine.events import Events
from husk.engine.networks.model import Network
from husk.errors import InvalidParameter, NotFound
from husk.network.bridge import BridgeDriver, BridgeSettings
from husk.network.sandbox import Lease
from husk.storage.state import Change, StateStore

KIND = "network"
WARM_SANDBOXES = 4


class Networks:
    def __init__(self, driver: BridgeDriver, records: dict[str, Network], events: Events) -> None:
        self._driver = driver
        self._by_name = records
        self._events = events

    @classmethod
    async def open(
        cls, config: Config, state: StateStore, events: Events, containers: Iterable[Container]
    ) -> "Networks":
        records = {n.name: n for n in (msgspec.json.decode(b, type=Network) for b in state.load(KIND).values())}
        remembered = records["bridge"].gateway_interface if "bridge" in records else None
        driver = await BridgeDriver.open(
            BridgeSettings(
                interface=config.bridge_name,
                table=config.nft_table,
                netns_dir=config.exec_root / "netns",
                bip=config.bip,
                pools=config.default_address_pools,
                warm=WARM_SANDBOXES,
            ),
            remembered,
            [lease for record in containers if (lease := _lease(record)) is not None],
        )
        for name, kind in (("bridge", "bridge"), ("host", "host"), ("none", "null")):
            network = records.setdefault(
                name, Network(id=secrets.token_hex(32), name=name, driver=kind, created=rfc3339(now_ns()))
            )
            if name == "bridge":
                network.subnet, network.gateway = str(driver.subnet), str(driver.gateway)
                network.options = _bridge_options(config.bridge_name)
        await state.commit(*(Change(KIND, n.id, msgspec.json.encode(n)) for n in records.values()))
        return cls(driver, records, events)

    def listing(self) -> list[Network]:
        return list(self._by_name.values())

    def find(self, reference: str) -> Network:
        """By full id, name, or unique leading part of an id."""
        for network in self._by_name.values():
            if reference in (network.id, network.name):
                return network
        matches = [n for n in self._by_name.values() if reference and n.id.startswith(reference)]
        if len(matches) > 1:
            raise InvalidParameter(
                f"network {reference} is ambiguous ({len(matches)} matches found based on ID prefix)"
            )
        if not matches:
            raise NotFound(f"network {reference} not found")
        return matches[0]

    def endpoint(self, mode: str) -> Endpoint:
        """A new container's place on the network that its mode names; it has no address before it runs."""
        network = self.find(mode)
        return Endpoint(network_name=network.name, network_id=network.id)

    async def connect(self, record: Container) -> str:
        """Put a container that is about to run on its network; returns the gateway's address."""
        network = self.find(record.host_config.network_mode)
        endpoint = record.endpoints.setdefault(network.name, self.endpoint(network.name))
        gateway = ""
        if network.driver == "bridge" and not record.config.network_disabled:
            lease = await self._driver.acquire()
            gateway = lease.gateway
            endpoint.ip_address, endpoint.prefix_len = lease.ip_address, lease.prefix_len
            endpoint.gateway, endpoint.mac_address = lease.gateway, lease.mac_address
            endpoint.host_interface = lease.host_interface
            record.sandbox_path = lease.sandbox_path
        endpoint.endpoint_id = secrets.token_hex(32)
        self._publish("connect", network, record)
        return gateway

    async def disconnect(self, record: Container) -> None:
        """Give back what `connect` took. Safe to call twice."""
        lease = _lease(record)
        for name, endpoint in record.endpoints.items():
            if endpoint.endpoint_id:
                self._publish("disconnect", self._by_name[name], record)
            record.endpoints[name] = Endpoint(
                network_name=endpoint.network_name, network_id=endpoint.network_id, request=endpoint.request
            )
        record.sandbox_path = ""
        if lease is not None:
            await self._driver.release(lease)

    async def close(self, remove: bool) -> None:
        await self._driver.close(remove=remove)

    def _publish(self, action: str, network: Network, record: Container) -> None:
        attributes = {"container": record.id, "name": network.name, "type": network.driver}
        self._events.publish("network", action, network.id, attributes)


def _lease(record: Container) -> Lease | None:
    for endpoint in record.endpoints.values():
        if endpoint.host_interface:
            return Lease(
                sandbox_path=record.sandbox_path,
                host_interface=endpoint.host_interface,
                ip_address=endpoint.ip_address,
                prefix_len=endpoint.prefix_len,
                gateway=endpoint.gateway,
                mac_address=endpoint.mac_address,
            )
    return None


def _bridge_options(interface: str) -> dict[str, str]:
    prefix = "com.docker.network."
    return {
        prefix + "bridge.default_bridge": "true",
        prefix + "bridge.enable_icc": "true",
        prefix + "bridge.enable_ip_masquerade": "true",
        prefix + "bridge.name": interface,
        prefix + "driver.mtu": "1500",
    }
