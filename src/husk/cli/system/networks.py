"""`husk network`: networks, and the containers on them."""

import ipaddress
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from husk.cli.kit.command import Flag, HuskCommand, as_json, flag, many
from husk.cli.kit.complete import containers
from husk.cli.kit.engine import ask, ask_plainly
from husk.cli.kit.group import words
from husk.cli.kit.kinds import Document, Pruning, Shown, ThingKind, inspecting, listing, name_of, pruning, removing
from husk.cli.kit.place import HostChoice
from husk.cli.kit.read import mapping, moment_of
from husk.cli.kit.words import moment, pairs, short_id
from husk.cli.kit.writing import document, say
from husk.client.client import Client
from husk.errors import InvalidParameter

HEADINGS = {
    "ID": "NETWORK ID",
    "Name": "NAME",
    "Driver": "DRIVER",
    "Scope": "SCOPE",
    "IPv4": "IPV4",
    "IPv6": "IPV6",
    "Internal": "INTERNAL",
    "Labels": "LABELS",
    "CreatedAt": "CREATED",
}
_COLUMNS = ("ID", "Name", "Driver", "Scope")


def row(attrs: Document, shown: Shown) -> dict[str, str]:
    created = moment_of(attrs.get("Created"))
    return {
        "ID": str(attrs["Id"]) if shown.whole else short_id(str(attrs["Id"])),
        **{name: str(attrs.get(name) or "") for name in ("Name", "Driver", "Scope")},
        "IPv4": _truth(attrs.get("EnableIPv4")),
        "IPv6": _truth(attrs.get("EnableIPv6")),
        "Internal": _truth(attrs.get("Internal")),
        "Labels": pairs(attrs.get("Labels")),
        "CreatedAt": moment(created.timestamp()) if isinstance(created, datetime) else "",
    }


def _truth(value: object) -> str:
    return str(bool(value)).lower()


_CONDITIONS = ("dangling", "driver", "id", "label", "name", "scope", "type")
NETWORK = ThingKind("network", lambda engine: engine.networks, HEADINGS, _COLUMNS, row, "ID", "Name", _CONDITIONS)


@click.command(cls=HuskCommand)
@flag("--attachable", help="Enable manual container attachment.")
@many("--aux-address", metavar="MAP", help="Auxiliary IPv4 or IPv6 addresses used by the network driver.")
@click.option("--config-from", metavar="STRING", default="", help="The network from which to copy the configuration.")
@flag("--config-only", help="Create a configuration only network.")
@click.option("-d", "--driver", metavar="STRING", default="bridge", help="Driver to manage the network.")
@many("--gateway", help="IPv4 or IPv6 gateway for the master subnet.")
@flag("--ingress", help="Create swarm routing-mesh network.")
@flag("--internal", help="Restrict external access to the network.")
@many("--ip-range", help="Allocate container IP from a sub-range.")
@click.option("--ipam-driver", metavar="STRING", default="default", help="IP address management driver.")
@many("--ipam-opt", metavar="MAP", help="Set IPAM driver specific options.")
@flag("--ipv4", default=None, help="Enable or disable IPv4 address assignment (default true).")
@flag("--ipv6", default=None, help="Enable or disable IPv6 address assignment.")
@many("--label", help="Set metadata on a network.")
@many("-o", "--opt", metavar="MAP", help="Set driver specific options.")
@click.option("--scope", metavar="STRING", default="", help="Control the network's scope.")
@many("--subnet", help="Subnet in CIDR format that represents a network segment.")
@as_json
@click.argument("name", metavar="NETWORK")
@click.pass_obj
def create(place: HostChoice, /, name: str, as_json: bool, **flags: Any) -> None:
    """Create a network."""
    settings = {
        **{key: flags[key] for key in ("driver", "attachable", "ingress", "internal", "scope")},
        **{key: flags[key] for key in ("config_from", "config_only")},
        "enable_ipv4": flags["ipv4"],
        "enable_ipv6": flags["ipv6"],
        "labels": mapping("label", flags["label"], bare=True),
        "options": mapping("opt", flags["opt"]),
        "ipam": addresses(flags),
    }

    async def created(engine: Client) -> None:
        made = await engine.networks.create(name, **settings)
        document(made.attrs) if as_json else say(made.id)

    ask(place, created)


def addresses(flags: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read the pools: to each subnet the range, gateway and other addresses that are in it."""
    pools: list[dict[str, Any]] = [{"Subnet": subnet} for subnet in _apart(flags["subnet"])]
    for key, word in (("IPRange", "ip-range"), ("Gateway", "gateway")):
        for text in _apart(flags[word.replace("-", "_")]):
            pool = _pool(pools, text, word)
            if key in pool:
                raise InvalidParameter(f"--{word}: subnet {pool['Subnet']} has {pool[key]} already, {text} is one more")
            pool[key] = text
    for name, text in mapping("aux-address", flags["aux_address"]).items():
        _pool(pools, text, "aux-address").setdefault("AuxiliaryAddresses", {})[name] = text
    driver, options = flags["ipam_driver"], mapping("ipam-opt", flags["ipam_opt"])
    if not pools and driver == "default" and not options:
        return None
    return {"Driver": driver, "Config": pools, "Options": options}


def _apart(given: Sequence[str]) -> list[str]:
    return [part for text in given for part in text.split(",")]


def _pool(pools: Sequence[dict[str, Any]], text: str, word: str) -> dict[str, Any]:
    try:
        wanted = ipaddress.ip_network(text, strict=False)
        for pool in pools:
            subnet = ipaddress.ip_network(pool["Subnet"], strict=False)
            if wanted.version == subnet.version and wanted.subnet_of(subnet):  # type: ignore[arg-type]
                return pool
    except ValueError as error:
        raise InvalidParameter(f"--{word}: {error}") from None
    raise InvalidParameter(f"--{word}: no --subnet contains {text}")


@click.command(cls=HuskCommand)
@many("--alias", help="Add network-scoped alias for the container.")
@many("--driver-opt", help="Driver options for the network.")
@click.option("--gw-priority", type=int, default=0, metavar="INT", help="Highest one provides the default gateway.")
@click.option("--ip", metavar="STRING", default="", help="IPv4 address (e.g., 172.30.100.104).")
@click.option("--ip6", metavar="STRING", default="", help="IPv6 address (e.g., 2001:db8::33).")
@many("--link", help="Add link to another container.")
@many("--link-local-ip", help="Add a link-local address for the container.")
@name_of(NETWORK, "network")
@click.argument("container", shell_complete=containers)
@click.pass_obj
def connect(place: HostChoice, /, network: str, container: str, **flags: Any) -> None:
    """Connect a container to a network."""

    async def connected(engine: Client) -> None:
        await (await engine.networks.get(network)).connect(
            container,
            aliases=_apart(flags["alias"]),
            driver_opt=mapping("driver-opt", _apart(flags["driver_opt"])),
            gateway_priority=flags["gw_priority"],
            ipv4_address=flags["ip"],
            ipv6_address=flags["ip6"],
            links=flags["link"],
            link_local_ips=_apart(flags["link_local_ip"]),
        )

    ask(place, connected)


@click.command(cls=HuskCommand)
@flag("-f", "--force", help="Force the container to disconnect from a network.")
@name_of(NETWORK, "network")
@click.argument("container", shell_complete=containers)
@click.pass_obj
def disconnect(place: HostChoice, /, network: str, container: str, force: bool) -> None:
    """Disconnect a container from a network."""

    async def disconnected(engine: Client) -> None:
        await (await engine.networks.get(network)).disconnect(container, force=force)

    ask_plainly(place, disconnected)


async def _prune(engine: Client, filters: Mapping[str, Any]) -> Any:
    return await engine.networks.prune(filters)


def _warning(flags: Mapping[str, Any]) -> str:
    return "This will remove all custom networks not used by at least one container."


network = words(
    "network",
    "Manage networks.",
    connect,
    create,
    disconnect,
    listing(NETWORK, "List networks."),
    inspecting(
        NETWORK,
        "Display detailed information on one or more networks.",
        Flag(["-v", "--verbose"], help="Verbose output for diagnostics."),
    ),
    removing(NETWORK, "Remove one or more networks.", "Do not error if the network does not exist.", True),
    pruning(Pruning(_prune, _warning, "Deleted Networks:", "NetworksDeleted"), "Remove all unused networks."),
)
