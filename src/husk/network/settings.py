"""The settings of one network: what its driver makes on the host, and how its endpoints behave."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from husk.config import AddressPool
from husk.network.rules import GatewayModes
from husk.network.sandbox import Lease, ParentLink

# Where the program wireguard-go puts its sockets, by interface.
WIREGUARD_SOCKETS = Path("/var/run/wireguard")


class BridgeSettings(NamedTuple):
    """The names that one driver gives its things, and the behaviour of its network."""

    # The bridge, or the parent of a macvlan or ipvlan network.
    interface: str
    # Marks what we made on the host; the same for all drivers of a daemon.
    owner: str
    netns_dir: Path
    # The gateway's address with its prefix; empty for the first free subnet of the pools.
    bip: str = ""
    pools: tuple[AddressPool, ...] = ()
    # What endpoints get that ask for no address, and what none of them gets.
    ip_range: str = ""
    reserved: tuple[str, ...] = ()
    internal: bool = False
    icc: bool = True
    masquerade: bool = True
    mtu: int = 0
    # How many sandboxes are kept ready, and for how many seconds after the last use (0: always).
    warm: int = 2
    warm_for: float = 0.0
    # The gateway's IPv6 address with its prefix, or what a subnet is to be chosen from; empty without IPv6.
    bip6: str = ""
    pool6: str = ""
    ip_range6: str = ""
    ipv4: bool = True
    # The versions of IP of which the network has a subnet and no gateway.
    bare: frozenset[int] = frozenset()
    # The versions of IP whose gateway is none of the host's.
    silent: frozenset[int] = frozenset()
    # It has to be there: it is somebody else's.
    must_exist: bool = False
    # What lies between the containers and the rest of the world, per version of IP.
    gateway_modes: GatewayModes = GatewayModes()
    parent_link: ParentLink | None = None
    # How often a new endpoint tells the network its MAC, and after how many seconds again.
    announcements: int = 3
    announcement_interval: float = 1.0
    # Also beside many others, when it has no news for them.
    always_announced: bool = False
    # The gateways that endpoints use instead of the bridge, where these are others.
    route: str = ""
    route6: str = ""
    # Whether the host may be told to forward packets.
    forward: bool = True
    # The parent is an interface of ours that leads nowhere.
    alone: bool = False
    # How the names of interfaces begin inside, which have numbers behind it.
    prefix: str = "eth"
    # Addresses that the host has on the bridge besides the gateway's.
    own: tuple[str, ...] = ()


class Opening(NamedTuple):
    """A network to be made ready: `subnet` is that of last time, `leases` what running containers have of it."""

    settings: BridgeSettings
    subnet: str | None
    leases: Sequence[Lease]
    # Leave alone what no lease owns: it may be that of containers whose records cannot be read.
    spare: bool = False


class TunnelSettings(NamedTuple):
    """The settings of the device that encrypted networks run over (`wireguard`)."""

    # No other daemon of this machine has that name, in whatever namespace.
    interface: str
    # Marks what we made on the host, as that of networks does; and the table of its rules.
    owner: str
    table: str
    # The UDP port at which other hosts reach it.
    port: int
