"""The endpoint of a host itself on an overlay network: whoever asks a service may be answered from there. Pure.

Where several hosts share the network it is an address of the host's own; on one host it is the bridge's, the gateway.
"""

import hashlib
from ipaddress import ip_address

from msgspec import Struct

from husk.engine.model.network import Network
from husk.network.ipam import mac_address


class LoadBalancer(Struct, frozen=True):
    """The load balancer of a network, by the names that Docker gives it and with the addresses that it has."""

    # Of its place among the containers of a network, and its own.
    key: str
    name: str
    endpoint_id: str
    mac_address: str
    # With their prefixes; empty where there is none.
    address: str
    address6: str


def load_balancer(network: Network, own: tuple[str, ...]) -> LoadBalancer | None:
    """`own` are the host's addresses there, where they are not the gateway's."""
    found = own or tuple(filter(None, (network.gateway, network.gateway6)))
    if not found:
        return None
    address = next((one for one in found if ":" not in one), "")
    address6 = next((one for one in found if ":" in one), "")
    first = ip_address(address or address6)
    return LoadBalancer(
        key="ingress-sbox" if network.ingress else f"lb-{network.name}",
        name="ingress-endpoint" if network.ingress else f"{network.name}-endpoint",
        endpoint_id=hashlib.sha256(f"load balancer {network.id} {first}".encode()).hexdigest(),
        mac_address=mac_address(first),
        address=_with_prefix(address, network.subnet),
        address6=_with_prefix(address6, network.subnet6),
    )


def _with_prefix(address: str, subnet: str) -> str:
    return f"{address}/{subnet.partition('/')[2]}" if address else ""
