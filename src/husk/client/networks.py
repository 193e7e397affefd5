"""Networks: the engine's, and each by itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from husk.client.calls import Calls, field
from husk.client.container import Container
from husk.client.filters import filters_of
from husk.client.thing import Listing, Thing, id_of


class Network(Thing):
    """A network of an engine.

    network = await engine.networks.create("inner", internal=True)
    await network.connect(box, aliases=["db"])
    """

    def __repr__(self) -> str:
        return f"<Network {self.short_id} {self.name}>"

    @property
    def name(self) -> str:
        """The name."""
        return str(self.attrs.get("Name", ""))

    @property
    def driver(self) -> str:
        """The driver: bridge, overlay, macvlan and so on."""
        return str(self.attrs.get("Driver", ""))

    @property
    def labels(self) -> dict[str, str]:
        """The labels."""
        return dict(self.attrs.get("Labels") or {})

    @property
    def subnets(self) -> list[str]:
        """The subnets, of IPv4 and IPv6."""
        pools = (self.attrs.get("IPAM") or {}).get("Config") or []
        return [str(pool["Subnet"]) for pool in pools if pool.get("Subnet")]

    @property
    def containers(self) -> dict[str, dict[str, Any]]:
        """The containers that run on it, by id, with `IPv4Address` and so on; not told in a list: `reload` one."""
        return dict(self.attrs.get("Containers") or {})

    async def connect(
        self,
        container: str | Container,
        *,
        aliases: Sequence[str] = (),
        ipv4_address: str = "",
        ipv6_address: str = "",
        link_local_ips: Sequence[str] = (),
        links: Sequence[str] = (),
        mac_address: str = "",
        driver_opt: Mapping[str, str] | None = None,
        gateway_priority: int = 0,
    ) -> None:
        """Put a container on the network.

        :param container: the container, or its name or id.
        :param aliases: more names for it on this network.
        :param ipv4_address: its address; one is chosen if empty.
        :param ipv6_address: its address of IPv6; one is chosen if empty.
        :param link_local_ips: more addresses, of the kind that no router passes on.
        :param links: other containers that it sees by other names, as `container:name`.
        :param mac_address: the MAC address of its interface; one is chosen if empty.
        :param driver_opt: options of the driver.
        :param gateway_priority: the network with the highest number has the default route.
        :raises NotFound: there is no such container or network.
        :raises Conflict: the container is on it already, or an address is taken.
        """
        addresses = {
            "IPv4Address": ipv4_address,
            "IPv6Address": ipv6_address,
            "LinkLocalIPs": list(link_local_ips),
        }
        endpoint = {
            "Aliases": list(aliases),
            "Links": list(links),
            "MacAddress": mac_address,
            "DriverOpts": dict(driver_opt or {}),
            "GwPriority": gateway_priority,
            "IPAMConfig": {name: value for name, value in addresses.items() if value},
        }
        wanted = {name: value for name, value in endpoint.items() if value}
        await self._calls.post(f"{self._path}/connect", {"Container": id_of(container), "EndpointConfig": wanted})

    async def disconnect(self, container: str | Container, *, force: bool = False) -> None:
        """Take a container off the network.

        :param container: the container, or its name or id.
        :param force: forget also one that is not there any more.
        :raises NotFound: there is no such container or network.
        """
        await self._calls.post(f"{self._path}/disconnect", {"Container": id_of(container), "Force": force})

    async def remove(self) -> None:
        """Remove the network.

        :raises Forbidden: a container is on it, or it is one of the engine's own.
        :raises Conflict: a service uses it.
        """
        await self._calls.delete(self._path)

    @property
    def _path(self) -> str:
        return f"/networks/{self.id}"


class Networks:
    """`engine.networks`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def create(
        self,
        name: str,
        *,
        driver: str = "bridge",
        subnet: str = "",
        gateway: str = "",
        ip_range: str = "",
        ipam: Mapping[str, Any] | None = None,
        options: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        internal: bool = False,
        attachable: bool = False,
        ingress: bool = False,
        enable_ipv4: bool | None = None,
        enable_ipv6: bool | None = None,
        scope: str = "",
        config_only: bool = False,
        config_from: str = "",
    ) -> Network:
        """Make a network. A call that is cancelled leaves none behind.

        :param name: the name.
        :param driver: `bridge`, `overlay`, `macvlan` or `ipvlan`.
        :param subnet: the subnet, as `10.1.0.0/24`; one is chosen if empty.
        :param gateway: the address of the gateway; the first of the subnet if empty.
        :param ip_range: the part of the subnet that addresses are chosen from.
        :param ipam: the API's own document, for what the three cannot say.
        :param options: options of the driver.
        :param labels: labels.
        :param internal: let nothing in or out.
        :param attachable: let plain containers come on it, where it is a swarm's.
        :param ingress: make it the network of the published ports of a swarm.
        :param enable_ipv4: give addresses of IPv4; the engine decides if None.
        :param enable_ipv6: give addresses of IPv6; the engine decides if None.
        :param scope: `local` or `swarm`; that of the driver if empty.
        :param config_only: keep it as settings for other networks only.
        :param config_from: the network whose settings it takes.
        :returns: the network.
        :raises Conflict: the name is taken.
        :raises InvalidParameter: a subnet, address or option makes no sense.
        """
        pool = {"Subnet": subnet, "Gateway": gateway, "IPRange": ip_range}
        given = {key: value for key, value in pool.items() if value}
        document = {
            "Name": name,
            "Driver": driver,
            "IPAM": dict(ipam) if ipam is not None else {"Config": [given]} if given else None,
            "Options": dict(options or {}),
            "Labels": dict(labels or {}),
            "Internal": internal,
            "Attachable": attachable,
            "Ingress": ingress,
            "EnableIPv4": enable_ipv4,
            "EnableIPv6": enable_ipv6,
            "Scope": scope,
            "ConfigOnly": config_only,
            "ConfigFrom": {"Network": config_from} if config_from else None,
        }
        wanted = {key: value for key, value in document.items() if value not in (None, "", {})}

        async def created() -> Network:
            answer = await self._calls.post("/networks/create", wanted)
            return await self.get(field(answer, "Id"))

        return await self._calls.made(created(), Network.remove)

    async def get(self, name: str, *, verbose: bool = False, scope: str = "") -> Network:
        """Find a network.

        :param name: its name, its id, or the beginning of the id.
        :param verbose: ask for the services and tasks on it, too.
        :param scope: `local` or `swarm`, where both have one of that name.
        :returns: the network.
        :raises NotFound: there is none.
        """
        query = {"verbose": verbose or None, "scope": scope or None}
        return Network(self._calls, await self._calls.get(f"/networks/{name}", query))

    async def list(
        self,
        *,
        names: Sequence[str] = (),
        ids: Sequence[str] = (),
        filters: Mapping[str, Any] | None = None,
    ) -> list[Network]:
        """List the networks.

        :param names: these names alone.
        :param ids: these ids alone.
        :param filters: conditions by name: `{"driver": "bridge", "label": "team=red"}`.
        :returns: the networks.
        """
        wanted = filters_of(filters)
        for key, values in (("name", names), ("id", ids)):
            if values:
                wanted.setdefault(key, []).extend(values)
        found = await self._calls.get("/networks", {"filters": wanted})
        return Listing(Network(self._calls, each) for each in found)

    async def prune(self, filters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Remove the networks that no container is on.

        :param filters: conditions by name: `{"until": "24h"}`.
        :returns: the API's document: `NetworksDeleted`.
        """
        found: dict[str, Any] = await self._calls.post("/networks/prune", None, {"filters": filters_of(filters)})
        return found
