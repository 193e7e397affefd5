"""Ports as `-p` and `--expose` take them: `[[IP:]HOST:]CONTAINER[/PROTOCOL]`, each one port or a range. Pure."""

from collections.abc import Sequence

from husk.errors import InvalidParameter
from husk.text.digits import read_number

_PROTOCOLS = ("tcp", "udp", "sctp")
_LARGEST = 65535
# Ports of the container, each with the addresses and ports of the host that lead to it.
Published = dict[str | int, list[tuple[str, str]]]


def published(given: Sequence[str]) -> Published:
    found: Published = {}
    for text in given:
        for port, place in _published(text):
            found.setdefault(port, []).append(place)
    return found


def exposed(given: Sequence[str]) -> list[str | int]:
    found: list[str | int] = []
    for text in given:
        ports, _, protocol = text.partition("/")
        first, last = _range(ports, text)
        found.extend(f"{port}/{_protocol(protocol, text)}" for port in range(first, last + 1))
    return found


def _published(text: str) -> list[tuple[str, tuple[str, str]]]:
    rest, _, protocol = text.partition("/")
    kind = _protocol(protocol, text)
    rest, _, inside = rest.rpartition(":")
    address, _, outside = rest.rpartition(":")
    if rest and "]" in outside:  # `[::1]::80` has no port of the host
        address, outside = rest, ""
    address = address.removesuffix(":") if address.endswith("]:") else address
    first, last = _range(inside, text)
    ports = range(first, last + 1)
    places = [""] * len(ports)
    if outside:
        low, high = _range(outside, text, "hostPort")
        if high - low == last - first:
            places = [str(port) for port in range(low, high + 1)]
        elif first == last:
            places = [outside]  # any of them
        else:
            raise InvalidParameter(f"invalid ranges specified for container and host Ports: {inside} and {outside}")
    return [(f"{port}/{kind}", (address.strip("[]"), place)) for port, place in zip(ports, places, strict=True)]


def _protocol(text: str, whole: str) -> str:
    if text.lower() not in ("", *_PROTOCOLS):
        raise InvalidParameter(f"invalid proto: {text}: in {whole!r} expected one of {', '.join(_PROTOCOLS)}")
    return text.lower() or "tcp"


def _range(text: str, whole: str, kind: str = "containerPort") -> tuple[int, int]:
    start, dash, end = text.partition("-")
    first = read_number(start, most=_LARGEST)
    last = read_number(end, most=_LARGEST) if dash else first
    if first is not None and last is not None and first <= last:
        return first, last
    raise InvalidParameter(f"invalid {kind}: {text!r} in {whole!r}: expected [[IP:]HOST:]CONTAINER[/PROTOCOL]")
