"""Networks and volumes on the wire."""

from msgspec import UNSET, Struct, UnsetType, field


class Pool(Struct, kw_only=True, rename="pascal"):
    subnet: str
    gateway: str | UnsetType = UNSET


class Ipam(Struct, kw_only=True, rename="pascal"):
    driver: str = "default"
    options: dict[str, str] | None = None
    config: list[Pool]


class ConfigReference(Struct, kw_only=True, rename="pascal"):
    network: str = ""


class NetworkContainer(Struct, kw_only=True, rename="pascal"):
    """A running container on a network."""

    name: str
    endpoint_id: str = field(name="EndpointID")
    mac_address: str
    ipv4_address: str = field(name="IPv4Address")
    ipv6_address: str = field(default="", name="IPv6Address")


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
    containers: dict[str, NetworkContainer] | UnsetType = UNSET
    options: dict[str, str]
    labels: dict[str, str]


class VolumeList(Struct, kw_only=True, rename="pascal"):
    volumes: list[dict[str, object]]
    warnings: list[str] | None = None
