"""The model of a network: a name, a driver, and for bridges an address range of its own."""

import ipaddress
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from husk.network.rules import GatewayMode, GatewayModes
from husk.text.subnets import edges

BUILTIN = ("bridge", "host", "none")

_PREFIX = "com.docker.network."
# What options say.
TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
BRIDGE_NAME = _PREFIX + "bridge.name"
ICC = _PREFIX + "bridge.enable_icc"
MASQUERADE = _PREFIX + "bridge.enable_ip_masquerade"
INTERFACE_PREFIX = "com.docker.network.container_iface_prefix"
INHIBIT_IPV4 = _PREFIX + "bridge.inhibit_ipv4"
HOST_BINDING = _PREFIX + "bridge.host_binding_ipv4"
ENABLE_IPV4 = _PREFIX + "enable_ipv4"
ENABLE_IPV6 = _PREFIX + "enable_ipv6"
GATEWAY_MODE_4 = _PREFIX + "bridge.gateway_mode_ipv4"
GATEWAY_MODE_6 = _PREFIX + "bridge.gateway_mode_ipv6"
GATEWAY_MODES: dict[str, GatewayMode] = {
    "": "nat",
    "nat": "nat",
    "nat-unprotected": "nat-unprotected",
    "routed": "routed",
    "isolated": "isolated",
}
DEFAULT_BRIDGE = _PREFIX + "bridge.default_bridge"
MTU = _PREFIX + "driver.mtu"
# How often a new endpoint tells the network its MAC, and after how many milliseconds again.
ANNOUNCEMENTS = _PREFIX + "advertise_addr_nmsgs"
ANNOUNCEMENT_INTERVAL = _PREFIX + "advertise_addr_ms"
PARENT = "parent"
PARENT_DRIVERS = ("macvlan", "ipvlan")


class IpamConfig(Struct, kw_only=True, rename="pascal", frozen=True):
    """One address pool as a client asks for it."""

    subnet: str = ""
    ip_range: str = field(default="", name="IPRange")
    gateway: str = ""
    auxiliary_addresses: Mapping[str, str] = {}


class IpamRequest(Struct, kw_only=True, rename="pascal", frozen=True):
    driver: str = ""
    options: Mapping[str, str] | None = None
    config: Sequence[IpamConfig] = []


class ConfigSource(Struct, kw_only=True, rename="pascal", frozen=True):
    network: str = ""


class NetworkRequest(Struct, kw_only=True, rename="pascal", frozen=True):
    """A network as a client asks for it, in the API's own names."""

    name: str = ""
    driver: str = ""
    scope: str = ""
    internal: bool = False
    attachable: bool = False
    ingress: bool = False
    config_only: bool = False
    config_from: ConfigSource = field(default_factory=ConfigSource)
    ipam: IpamRequest = field(default_factory=IpamRequest, name="IPAM")
    # None is for the options, and the daemon's defaults of them, to decide: `options.with_defaults`.
    enable_ipv4: bool | None = field(default=None, name="EnableIPv4")
    enable_ipv6: bool | None = field(default=None, name="EnableIPv6")
    options: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}


class Network(Struct, kw_only=True, frozen=True):
    """The record of one network."""

    id: str
    name: str
    driver: str
    created: str
    scope: str = "local"
    subnet: str = ""
    gateway: str = ""
    ip_range: str = ""
    aux_addresses: Mapping[str, str] = {}
    # Only on a subnet that its owner chose may containers choose their addresses.
    chosen_subnet: bool = False
    subnet6: str = ""
    gateway6: str = ""
    ip_range6: str = ""
    aux_addresses6: Mapping[str, str] = {}
    chosen_subnet6: bool = False
    ipam_options: Mapping[str, str] | None = None
    internal: bool = False
    attachable: bool = False
    ingress: bool = False
    enable_ipv4: bool = True
    enable_ipv6: bool = False
    options: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    # It is nothing but settings for others, or has its own from such a one.
    config_only: bool = False
    config_from: str = ""
    # The versions of IP whose gateway follows from a subnet without one that somebody chose. As dockerd, it is not told
    # before the next start of the daemon: clients compare what they asked for with what they see.
    untold_gateways: Sequence[int] = []
    # The number of the network that hosts share; 0 for one of this host alone.
    vni: int = 0
    # Virtual addresses that services have here; on one that hosts share, all that the host has besides the gateway.
    service_addresses: Sequence[str] = []

    @property
    def bridged(self) -> bool:
        """On a single host an overlay network is a bridge like another, that the whole swarm knows."""
        return self.driver in ("bridge", "overlay")

    @property
    def on_parent(self) -> bool:
        """Its endpoints are interfaces on one of the host's own."""
        return self.driver in PARENT_DRIVERS

    @property
    def parent(self) -> str:
        """The interface of the host that endpoints are on: of ours, and leading nowhere, when nobody named one."""
        return self.options.get(PARENT) or f"dm-{self.id[:12]}"

    @property
    def gateway_interface(self) -> str:
        """The gateway with its prefix, such as 172.17.0.1/16: the bridge's own address, where it has one."""
        return _with_prefix(self.gateway, self.subnet)

    @property
    def gateway_interface6(self) -> str:
        return _with_prefix(self.gateway6, self.subnet6)

    @property
    def gateway_modes(self) -> GatewayModes:
        if self.driver != "bridge":
            return GatewayModes()
        named = (self.options.get(GATEWAY_MODE_4, ""), self.options.get(GATEWAY_MODE_6, ""))
        return GatewayModes(*(GATEWAY_MODES[mode] for mode in named))

    @property
    def routes(self) -> bool:
        """Its endpoints are on no link with anybody: packets are routed to them."""
        return self.driver == "ipvlan" and self.options.get("ipvlan_mode", "") in ("l3", "l3s")

    @property
    def bare(self) -> frozenset[int]:
        """The versions of IP in which nobody but containers, and no gateway, has an address here."""
        modes = self.gateway_modes
        isolated = [version for version, mode in ((4, modes.ipv4), (6, modes.ipv6)) if mode == "isolated"]
        alone = isolated + ([4] if self.internal and self._inhibited else [])
        return frozenset((4, 6) if self.routes else alone)

    @property
    def silent(self) -> frozenset[int]:
        """The versions of IP whose gateway is none of the host's: it has no address on the bridge."""
        return frozenset((4,) if self._inhibited else ())

    @property
    def _inhibited(self) -> bool:
        return self.driver == "bridge" and self.options.get(INHIBIT_IPV4, "") in TRUE

    @property
    def builtin(self) -> bool:
        return self.name in BUILTIN

    @property
    def resolves_names(self) -> bool:
        """Containers find each other by name on networks that somebody made; the ingress one only brings traffic."""
        return not self.builtin and not self.ingress

    @property
    def bridge_name(self) -> str:
        return self.options.get(BRIDGE_NAME) or f"br-{self.id[:12]}"

    @property
    def host_binding(self) -> str:
        return self.options.get(HOST_BINDING) or "0.0.0.0"


def _with_prefix(gateway: str, subnet: str) -> str:
    whole = ipaddress.ip_network(subnet)
    return f"{gateway or ipaddress.ip_address(edges(whole)[0])}/{whole.prefixlen}"
