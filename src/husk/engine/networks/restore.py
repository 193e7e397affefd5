"""Networks that a starting daemon finds on the host: what of them stays, and what is opened again.

A container whose record cannot be read runs on, and nobody knows which sandbox and which addresses are its own. While
there is such a container, nothing is removed that might be part of its network.
"""

import logging
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from husk.config import Config
from husk.engine.model.container import Container
from husk.engine.model.network import Network
from husk.engine.networks import default_bridge, options
from husk.engine.networks.endpoints import lease
from husk.engine.networks.overlays import encrypted, interface_of
from husk.network import host, sandbox, wireguard
from husk.network.settings import WIREGUARD_SOCKETS, BridgeSettings, Opening, TunnelSettings

log = logging.getLogger(__name__)

WARM_SANDBOXES = 4


def sweep(
    base: BridgeSettings,
    tunnel: TunnelSettings,
    networks: Collection[Network],
    running: Iterable[Container],
    unreadable_containers: Collection[str],
    unreadable_networks: Collection[str],
) -> None:
    """Remove sandboxes and interfaces of ours that belong to nobody. `tunnel` is that of encrypted networks. Blocks."""
    sandbox.make_place(base.netns_dir)
    if not unreadable_containers:
        sandbox.sweep(base.netns_dir, [record.sandbox_path for record in running if record.sandbox_path])
    interfaces = {network.parent if network.on_parent else network.bridge_name for network in networks}
    interfaces |= {interface_of(network) for network in networks if network.driver == "overlay"}
    interfaces |= {f"{kind}-{network_id[:12]}" for network_id in unreadable_networks for kind in ("br", "vx")}
    kept = bool(unreadable_networks) or any(network.vni and encrypted(network) for network in networks)
    if kept:
        interfaces.add(tunnel.interface)
    swept = tunnel.interface in host.sweep(base.owner, interfaces)
    path = WIREGUARD_SOCKETS / f"{tunnel.interface}.sock"
    if swept or (not kept and host.has_left(tunnel.interface, tunnel.table, path)):
        wireguard.tunnel.remove_left(tunnel)


@contextmanager
def named(config: Config) -> Iterator[Config]:
    """The settings with a name for the default bridge that it can have, and keeps until the context ends. Blocks."""
    if not config.usual_bridge or config.bridge:
        yield config
        return
    with host.free_name(config.usual_bridge, f"husk bridge of {config.nft_table}") as free:
        if not free:
            log.info("there is an interface %s already: the default bridge has another name", config.usual_bridge)
        yield config if free else replace(config, usual_bridge="")


def tunnel(config: Config) -> TunnelSettings:
    """Describe this daemon's device for encrypted networks on the host. Pure."""
    return TunnelSettings(
        interface=config.tunnel_name,
        owner=f"husk bridge of {config.nft_table}",
        table=f"{config.nft_table}-wg",
        port=config.wireguard_port,
    )


def openings(
    networks: Iterable[Network], running: Collection[Container], config: Config, base: BridgeSettings, spare: bool
) -> dict[str, Opening]:
    """Plan the opening of the networks with a driver, by their names. Pure.

    All at once: with many networks most of the time would go into looking at the host again for each.
    """
    driven = [network for network in networks if network.bridged or network.on_parent]
    return {network.name: _opening(network, running, config, base)._replace(spare=spare) for network in driven}


def _opening(network: Network, running: Iterable[Container], config: Config, base: BridgeSettings) -> Opening:
    leases = [
        given
        for record in running
        if (endpoint := record.endpoints.get(network.name)) is not None
        and (given := lease(record.sandbox_path, endpoint)) is not None
    ]
    if not network.builtin:
        return Opening(options.settings(network, base), None, leases)
    settings = default_bridge.settings(network, config, base)
    return Opening(settings._replace(warm=WARM_SANDBOXES, warm_for=0.0), network.subnet or None, leases)
