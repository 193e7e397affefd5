"""Rules of dockerd for the settings of the default bridge and of names, with a message for each. Pure."""

import ipaddress
from collections.abc import Sequence
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network

from msgspec.structs import replace

from husk.config import DefaultBridge
from husk.config.settings import Settings
from husk.errors import InvalidParameter
from husk.text.patterns import pattern

_DOMAIN = pattern(r"\.|[a-zA-Z0-9_]([a-zA-Z0-9_-]*[a-zA-Z0-9_])?(\.[a-zA-Z0-9_]([a-zA-Z0-9_-]*[a-zA-Z0-9_])?)*\.?")
_LARGEST_MTU = 65535


def default_bridge(settings: Settings) -> DefaultBridge:
    """Return the settings of the default network; InvalidParameter where its parts do not fit together."""
    for flag, given in (("--bip", settings.bip), ("--bip6", settings.bip6)):
        if settings.bridge and given:
            raise InvalidParameter(f"You specified -b & {flag}, mutually exclusive options. Please specify only one")
    if settings.bridge == "none":
        # As dockerd: what a bridge is to be that is not made, nobody looks at.
        settings = replace(settings, fixed_cidr=None, fixed_cidr_v6=None, default_gateway=None, default_gateway_v6=None)
    bip = IPv4Interface(settings.bip) if _readable(settings.bip) else None
    bip6 = _bip6(settings.bip6 or "")
    range4 = _range4(settings.fixed_cidr or "", bip)
    range6 = _range6(settings.fixed_cidr_v6 or "", bip6)
    subnet4 = bip.network if bip else range4
    subnet6 = bip6.network if bip6 else range6
    mtu = settings.mtu or 0
    if mtu < 0 or mtu > _LARGEST_MTU or 0 < mtu < 68:
        raise InvalidParameter(f"invalid default MTU: {mtu}")
    host_address = settings.ip or ""
    return DefaultBridge(
        ipv6=bool(settings.ipv6),
        bip6=str(bip6) if bip6 else "",
        fixed_cidr=str(range4) if range4 else "",
        fixed_cidr_v6=str(range6) if range6 else "",
        default_gateway=_gateway("default-gateway", settings.default_gateway or "", subnet4, 4),
        default_gateway_v6=_gateway("default-gateway-v6", settings.default_gateway_v6 or "", subnet6, 6),
        icc=settings.icc is not False,
        ip_masq=settings.ip_masq is not False,
        mtu=mtu,
        ip=_host_address(host_address) if host_address else "",
    )


def _readable(bip: str | None) -> bool:
    """Tell if it is an address at all; what is wrong with it is said where the address is used."""
    try:
        return bool(bip) and IPv4Interface(bip) is not None
    except ValueError:
        return False


def _bip6(text: str) -> IPv6Interface | None:
    if not text:
        return None
    try:
        found = IPv6Interface(text)
    except ValueError:
        raise InvalidParameter(
            f"invalid bip6 {text!r}: it is an IPv6 address with its prefix, as fd00:1::1/64"
        ) from None
    if "/" not in text or found.network.prefixlen > 126:
        raise InvalidParameter(f"invalid bip6 {text!r}: it needs a prefix of at most 126 bits, as fd00:1::1/64")
    return found


def _range4(text: str, bip: IPv4Interface | None) -> IPv4Network | None:
    if not text:
        return None
    try:
        found = IPv4Network(text, strict=False)
    except ValueError:
        raise InvalidParameter(f"invalid fixed-cidr {text!r}: it is an IPv4 network, as 172.20.1.0/24") from None
    if bip is not None and not found.subnet_of(bip.network):
        raise InvalidParameter(f"invalid fixed-cidr {found}: it is not a part of the bridge's subnet {bip.network}")
    if bip is None and found.prefixlen > 30:
        raise InvalidParameter(f"invalid fixed-cidr {found}: without a bip it is the subnet, and has no room for one")
    return found


def _range6(text: str, bip6: IPv6Interface | None) -> IPv6Network | None:
    if not text:
        return None
    try:
        found = IPv6Network(text, strict=False)
    except ValueError:
        raise InvalidParameter(f"invalid fixed-cidr-v6 {text!r}: it is an IPv6 network, as fd00:1::/64") from None
    if found.is_multicast:
        raise InvalidParameter(f"invalid fixed-cidr-v6 {found}: multicast network address is not allowed")
    if bip6 is not None and not found.subnet_of(bip6.network):
        raise InvalidParameter(f"invalid fixed-cidr-v6 {found}: it is not a part of the subnet {bip6.network}")
    return found


def _gateway(key: str, text: str, subnet: IPv4Network | IPv6Network | None, version: int) -> str:
    if not text:
        return ""
    found = address(key, text)
    parsed = ipaddress.ip_address(found)
    if parsed.version != version:
        raise InvalidParameter(f"invalid {key} {text!r}: it is no IPv{version} address")
    if subnet is not None and parsed not in subnet:
        raise InvalidParameter(f"invalid {key} {text}: it is not in the bridge's subnet {subnet}")
    return found


def _host_address(text: str) -> str:
    found = address("ip", text)
    # What dockerd has by default: all addresses.
    return "" if found == "0.0.0.0" else found


def host_gateways(texts: Sequence[str]) -> tuple[str, ...]:
    """At most one of each kind, IPv4 first."""
    found = [ipaddress.ip_address(address("host-gateway-ips", text)) for text in texts if text]
    versions = [one.version for one in found]
    if len(found) > 2 or len(set(versions)) != len(versions):
        raise InvalidParameter("only one IPv4 and one IPv6 host gateway IP address can be specified")
    return tuple(str(one) for one in sorted(found, key=lambda one: one.version))


def address(key: str, text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        raise InvalidParameter(f"invalid {key} {text!r}: it is no IP address") from None


def search_domain(text: str) -> str:
    text = text.strip()
    if _DOMAIN.fullmatch(text) is None:
        raise InvalidParameter(f"{text} is not a valid domain")
    return text
