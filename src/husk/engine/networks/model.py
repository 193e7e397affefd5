"""What a network is: a name, a driver, and for bridges an address range of its own."""

from msgspec import Struct


class Network(Struct, kw_only=True):
    id: str
    name: str
    driver: str
    created: str
    scope: str = "local"
    subnet: str = ""
    gateway: str = ""
    internal: bool = False
    attachable: bool = False
    ingress: bool = False
    enable_ipv4: bool = True
    enable_ipv6: bool = False
    options: dict[str, str] = {}
    labels: dict[str, str] = {}

    @property
    def gateway_interface(self) -> str:
        """The bridge's own address with its prefix, such as 172.17.0.1/16."""
        return f"{self.gateway}/{self.subnet.partition('/')[2]}"
