"""Networks: the engine's, and each by itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from husk.client.calls import Calls, field
from husk.client.container import Container
from husk.client.filters import filters_of
from husk.client.thing import Thing, id_of


class Network(Thing):
    """A network of an engine.

    network = await engine.networks.create("inner", internal=True)
    await network.connect(box, aliases=["db"])
    """

    def __repr__(self) -> str:
        return f"<Network {self.short_id} {self.name}>"

    @property
    def name(self) -> str:
        return str(self.attrs.get("Name", ""))

    @property
    def driver(self) -> str:
        return str(self.attrs.get("Driver", ""))

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.attrs.get("Labels") or {})

    @property
    def subnets(self) -> list[str]:
        pools = (self.attrs.get("IPAM") or {}).get("Config") or []
        return [str(pool["Subnet"]) for pool in pools if pool.get("Subnet")]

    @property
    def containers(self) -> dict[str, dict[str, Any]]:
        """Those that run on it, by id: `Name`, `IPv4Address` … A list of networks does not tell: `reload` one."""
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
        """Put a container on it, under these names and addresses too."""
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
        """Take a container off it; with `force` also one that is not there any more."""
        await self._calls.post(f"{self._path}/disconnect", {"Container": id_of(container), "Force": force})

    async def remove(self) -> None:
        """Conflict or Forbidden while somebody is on it."""
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
        """A new network. `ipam` is the API's own document, for what `subnet`, `gateway` and `ip_range` cannot say.

        Who is cancelled meanwhile leaves none behind.
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
        """By name, id or the beginning of one; NotFound where there is none."""
        query = {"verbose": verbose or None, "scope": scope or None}
        return Network(self._calls, await self._calls.get(f"/networks/{name}", query))

    async def list(
        self,
        *,
        names: Sequence[str] = (),
        ids: Sequence[str] = (),
        filters: Mapping[str, Any] | None = None,
    ) -> list[Network]:
        """All, or those of these names and ids that the filters let through."""
        wanted = filters_of(filters)
        for key, values in (("name", names), ("id", ids)):
            if values:
                wanted.setdefault(key, []).extend(values)
        return [Network(self._calls, each) for each in await self._calls.get("/networks", {"filters": wanted})]

    async def prune(self, filters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Remove those that nobody is on: `NetworksDeleted`."""
        found: dict[str, Any] = await self._calls.post("/networks/prune", None, {"filters": filters_of(filters)})
        return found
