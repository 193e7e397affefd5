"""Networks as `--network` takes them: a name, or `name=NET,alias=A,ip=…`. Pure."""

from collections.abc import Sequence
from typing import Any

from husk.errors import InvalidParameter
from husk.text.digits import read_number

_ADDRESSES = {"ip": "IPv4Address", "ip6": "IPv6Address"}


def networking(
    given: Sequence[str], aliases: Sequence[str], ip: str, ip6: str, mac: str, link_local: Sequence[str] = ()
) -> tuple[str, dict[str, Any]]:
    """The first network, and what each endpoint is to have. What has flags of its own belongs to the first."""
    endpoints: dict[str, dict[str, Any]] = {}
    for text in given:
        name, endpoint = _endpoint(text)
        if name in endpoints:
            raise InvalidParameter(f"network {name!r} is specified multiple times")
        endpoints[name] = endpoint
    first = next(iter(endpoints), "")
    own: dict[str, Any] = {
        "Aliases": list(aliases),
        "IPAMConfig": {
            name: value
            for name, value in (("IPv4Address", ip), ("IPv6Address", ip6), ("LinkLocalIPs", list(link_local)))
            if value
        },
        "MacAddress": mac,
    }
    for name, value in own.items():
        if not value:
            continue
        into = endpoints.setdefault(first or "default", {})
        if name in into:
            raise InvalidParameter(f"conflicting options: --network {given[0]} and a flag both say {name}")
        into[name] = value
    return first, endpoints if len(endpoints) > 1 or any(endpoints.values()) else {}


def _endpoint(text: str) -> tuple[str, dict[str, Any]]:
    if "=" not in text:
        return text, {}
    name = ""
    endpoint: dict[str, Any] = {}
    for field in text.split(","):
        key, equals, value = field.strip().partition("=")
        if not equals:
            raise InvalidParameter(f"--network: invalid field {field!r}: expected KEY=VALUE")
        match key.lower():
            case "name":
                name = value
            case "alias":
                endpoint.setdefault("Aliases", []).append(value)
            case "ip" | "ip6":
                endpoint.setdefault("IPAMConfig", {})[_ADDRESSES[key.lower()]] = value
            case "link-local-ip":
                endpoint.setdefault("IPAMConfig", {}).setdefault("LinkLocalIPs", []).append(value)
            case "mac-address":
                endpoint["MacAddress"] = value
            case "driver-opt":
                option, _, said = value.partition("=")
                endpoint.setdefault("DriverOpts", {})[option] = said
            case "gw-priority":
                if (number := read_number(value, -(1 << 63))) is None:
                    raise InvalidParameter(f"--network: invalid gw-priority: {value!r}: expected a number")
                endpoint["GwPriority"] = number
            case _:
                raise InvalidParameter(
                    f"--network: invalid field {key!r}: expected name, alias, ip, ip6 or mac-address"
                )
    if not name:
        raise InvalidParameter(f"--network: {text!r} says no name: expected name=NETWORK,…")
    return name, endpoint
