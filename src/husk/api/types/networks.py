"""Networks on the wire."""

from collections.abc import Mapping

from msgspec import UNSET, Struct, UnsetType, field

from husk.engine.model.container_config import EndpointRequest


class Pool(Struct, kw_only=True, rename="pascal"):
    subnet: str
    ip_range: str | UnsetType = field(default=UNSET, name="IPRange")
    gateway: str | UnsetType = UNSET
    auxiliary_addresses: Mapping[str, str] | UnsetType = UNSET


class Ipam(Struct, kw_only=True, rename="pascal"):
    driver: str = "default"
    options: Mapping[str, str] | None = None
    config: list[Pool] | None


class ConfigReference(Struct, kw_only=True, rename="pascal"):
    network: str = ""


class NetworkContainer(Struct, kw_only=True, rename="pascal"):
    """A running container on a network."""

    name: str
    endpoint_id: str = field(name="EndpointID")
    mac_address: str
    ipv4_address: str = field(name="IPv4Address")
    ipv6_address: str = field(default="", name="IPv6Address")


class SubnetStatus(Struct, kw_only=True, rename="pascal"):
    ips_in_use: int = field(name="IPsInUse")
    dynamic_ips_available: int = field(name="DynamicIPsAvailable")


class IpamStatus(Struct, kw_only=True, rename="pascal"):
    subnets: dict[str, SubnetStatus]


class NetworkStatus(Struct, kw_only=True, rename="pascal"):
    ipam: IpamStatus = field(name="IPAM")


class NetworkTask(Struct, kw_only=True, rename="pascal"):
    """A task of a service on a network."""

    name: str
    endpoint_id: str = field(name="EndpointID")
    endpoint_ip: str = field(name="EndpointIP")
    info: Mapping[str, str]


class NetworkService(Struct, kw_only=True, rename="pascal"):
    vip: str = field(name="VIP")
    ports: list[str]
    local_lb_index: int = field(default=0, name="LocalLBIndex")
    tasks: list[NetworkTask]


class Peer(Struct, kw_only=True, rename="pascal"):
    """A host that takes part in a network of the swarm."""

    name: str
    ip: str = field(name="IP")


class NetworkCreated(Struct, kw_only=True, rename="pascal"):
    id: str
    warning: str = ""


class NetworksPruned(Struct, kw_only=True, rename="pascal"):
    networks_deleted: list[str] | None


class ConnectRequest(Struct, kw_only=True, rename="pascal"):
    container: str = ""
    endpoint_config: EndpointRequest = field(default_factory=EndpointRequest)


class DisconnectRequest(Struct, kw_only=True, rename="pascal"):
    container: str = ""
    force: bool = False


class Network(Struct, kw_only=True, rename="pascal"):
    name: str
    id: str
    created: str
    scope: str
    driver: str
    enable_ipv4: bool = field(name="EnableIPv4")
    enable_ipv6: bool = field(name="EnableIPv6")
    ipam: Ipam = field(name="IPAM")
    internal: bool
    attachable: bool
    ingress: bool
    config_from: ConfigReference = field(default_factory=ConfigReference)
    config_only: bool = False
    containers: dict[str, NetworkContainer] | UnsetType | None = UNSET
    options: Mapping[str, str]
    labels: Mapping[str, str] | None
    peers: list[Peer] | UnsetType = UNSET
    services: dict[str, NetworkService] | UnsetType = UNSET
    status: NetworkStatus | UnsetType = UNSET
