"""Networks: made anew with the same settings, and with other addresses where theirs are taken."""

from typing import Any

from husk.cli.migrate.report import MigrationReport
from husk.client.client import Client
from husk.errors import HuskError

# Every engine has these.
OWN = ("bridge", "host", "none", "podman", "ingress", "docker_gwbridge")
# Names of interfaces, which the other engine has.
_INTERFACES = ("com.docker.network.bridge.name", "com.docker.network.container_iface_prefix")


async def bring_networks(source: Client, target: Client, report: MigrationReport) -> None:
    here = {network.name for network in await target.networks.list()}
    for network in await source.networks.list():
        what = f"network {network.name}"
        if network.name in OWN:
            continue
        if network.name in here:
            report.skipped(what, "is here")
            continue
        if network.attrs.get("Scope") == "swarm":
            report.skipped(what, "left out: it is a swarm's")
            continue
        try:
            await _make(target, network.attrs, report, what)
        except HuskError as error:
            report.failed(what, error.message)


async def _make(target: Client, attrs: dict[str, Any], report: MigrationReport, what: str) -> None:
    pools = [
        {name: value for name, value in pool.items() if value} for pool in (attrs.get("IPAM") or {}).get("Config") or ()
    ]
    options = {name: value for name, value in (attrs.get("Options") or {}).items() if name not in _INTERFACES}
    settings: dict[str, Any] = {
        "driver": str(attrs.get("Driver") or "bridge"),
        "internal": bool(attrs.get("Internal")),
        "attachable": bool(attrs.get("Attachable")),
        "enable_ipv6": bool(attrs.get("EnableIPv6")),
        "labels": attrs.get("Labels") or {},
        "options": options,
    }
    try:
        await target.networks.create(str(attrs["Name"]), ipam={"Config": pools} if pools else None, **settings)
        report.done(what)
    except HuskError as error:
        if not pools:
            raise
        await target.networks.create(str(attrs["Name"]), **settings)
        theirs = ", ".join(str(pool.get("Subnet")) for pool in pools)
        report.done(f"{what}, with other addresses than {theirs}: {error.message}")
