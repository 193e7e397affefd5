"""What a network is: a name, a driver, and for bridges an address range of its own."""

from msgspec import Struct, field

BUILTIN = ("bridge", "host", "none")

_PREFIX = "com.docker.network."
BRIDGE_NAME = _PREFIX + "bridge.name"
ICC = _PREFIX + "bridge.enable_icc"
MASQUERADE = _PREFIX + "bridge.enable_ip_masquerade"
HOST_BINDING = _PREFIX + "bridge.host_binding_ipv4"
DEFAULT_BRIDGE = _PREFIX + "bridge.default_bridge"
MTU = _PREFIX + "driver.mtu"
PARENT = "parent"
UPPER_DRIVERS = ("macvlan", "ipvlan")


class IpamConfig(Struct, kw_only=True, rename="pascal"):
    """One address pool as a client asks for it."""

    subnet: str = ""
    ip_range: str = field(default="", name="IPRange")
    gateway: str = ""
    auxiliary_addresses: dict[str, str] = {}


class IpamRequest(Struct, kw_only=True, rename="pascal"):
    driver: str = ""
    options: dict[str, str] = {}
    config: list[IpamConfig] = []


class ConfigSource(Struct, kw_only=True, rename="pascal"):
    network: str = ""


class NetworkRequest(Struct, kw_only=True, rename="pascal"):
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
    enable_ipv4: bool = field(default=True, name="EnableIPv4")
    enable_ipv6: bool = field(default=False, name="EnableIPv6")
    options: dict[str, str] = {}
    labels: dict[str, str] = {}


class Network(Struct, kw_only=True):
    """The record of one network."""

    id: str
    name: str
    driver: str
    created: str
    scope: str = "local"
    subnet: str = ""
    gateway: str = ""
    ip_range: str = ""
    aux_addresses: dict[str, str] = {}
    # Only on a subnet that its owner chose may containers choose their addresses.
    chosen_subnet: bool = False
    subnet6: str = ""
    gateway6: str = ""
    ip_range6: str = ""
    aux_addresses6: dict[str, str] = {}
    chosen_subnet6: bool = False
    ipam_options: dict[str, str] | None = None
    internal: bool = False
    attachable: bool = False
    ingress: bool = False
    enable_ipv4: bool = True
    enable_ipv6: bool = False
    options: dict[str, str] = {}
    labels: dict[str, str] = {}
    # Virtual addresses that services have here.
    service_addresses: list[str] = []

    @property
    def bridged(self) -> bool:
        """On a single host an overlay network is a bridge like another, that the whole swarm knows."""
        return self.driver in ("bridge", "overlay")

    @property
    def upper(self) -> bool:
        """Its endpoints are interfaces on one of the host's own."""
        return self.driver in UPPER_DRIVERS

    @property
    def parent(self) -> str:
        """The interface of the host that endpoints are on: of ours, and leading nowhere, when nobody named one."""
        return self.options.get(PARENT) or f"dm-{self.id[:12]}"

    @property
    def gateway_interface(self) -> str:
        """The bridge's own address with its prefix, such as 172.17.0.1/16."""
        return f"{self.gateway}/{self.subnet.partition('/')[2]}"

    @property
    def gateway_interface6(self) -> str:
        return f"{self.gateway6}/{self.subnet6.partition('/')[2]}"

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
