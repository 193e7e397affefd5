"""Pictures that the server draws: who is on which network, and what takes room on the disk. Pure.

Here are places and sizes only, which templates write as SVG."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

ROW = 34
_TOP = 20
# Where the boxes of networks end, and those of containers begin.
LEFT_EDGE, RIGHT_EDGE, WIDTH = 240, 480, 720


class Box(NamedTuple):
    """A network or a container in the picture: the middle of its line."""

    name: str
    y: int
    note: str = ""


class DrawnLine(NamedTuple):
    """From a network to a container."""

    from_y: int
    to_y: int
    label: str


class Picture(NamedTuple):
    networks: list[Box]
    containers: list[Box]
    lines: list[DrawnLine]
    height: int


class Bar(NamedTuple):
    """A part of a bar: its place and length in thousandths of the whole."""

    start: float
    length: float


def picture(networks: Sequence[Mapping[str, Any]], containers: Iterable[Mapping[str, Any]]) -> Picture:
    """Networks at the left, the containers that are on them at the right, in the order that crosses few lines."""
    order = {str(network["Name"]): index for index, network in enumerate(networks)}
    found: list[tuple[list[str], str, Mapping[str, Any]]] = []
    for container in containers:
        joined = (container.get("NetworkSettings") or {}).get("Networks") or {}
        known = sorted((name for name in joined if name in order), key=order.__getitem__)
        if known:
            found.append((known, name_of(container), joined))
    found.sort(key=lambda each: ([order[name] for name in each[0]], each[1]))
    used = {name for known, _, _ in found for name in known}
    left = [Box(str(each["Name"]), 0, str(each.get("Driver", ""))) for each in networks if each["Name"] in used]
    height = max(len(left), len(found)) * ROW + _TOP
    left = [box._replace(y=_spread(index, len(left), height)) for index, box in enumerate(left)]
    places = {box.name: box.y for box in left}
    right: list[Box] = []
    lines: list[DrawnLine] = []
    for index, (known, name, joined) in enumerate(found):
        y = _spread(index, len(found), height)
        addresses = [str((joined[each] or {}).get("IPAddress") or "") for each in known]
        right.append(Box(name, y, ", ".join(filter(None, addresses))))
        lines.extend(DrawnLine(places[each], y, f"{name} is on {each}") for each in known)
    return Picture(left, right, lines, height)


def bars(sizes: Sequence[int]) -> list[Bar]:
    """Parts of one bar, one after the other."""
    whole = sum(sizes) or 1
    found: list[Bar] = []
    start = 0.0
    for size in sizes:
        length = 1000 * size / whole
        found.append(Bar(round(start, 1), round(length, 1)))
        start += length
    return found


def name_of(container: Mapping[str, Any]) -> str:
    """The name of a container in a list."""
    names = container.get("Names") or []
    return str(names[0]).lstrip("/") if names else str(container.get("Id", ""))[:12]


def _spread(index: int, count: int, height: int) -> int:
    return round((index + 0.5) * height / max(1, count))
