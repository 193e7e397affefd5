"""Containers as people think of them: by Compose project or stack, and by service. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

_PROJECTS = ("com.docker.compose.project", "com.docker.stack.namespace")
_SERVICES = ("com.docker.compose.service", "com.docker.swarm.service.name")
_HEALTH = re.compile(r"\((healthy|unhealthy|health: starting)\)")
_SECURE_PORTS = (443, 8443, 9443)


class PortLink(msgspec.Struct, frozen=True):
    """A published port: what to show, and the address to open; none for what no browser speaks."""

    text: str
    url: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A container as a list shows it."""

    id: str
    name: str
    image: str
    # created, running, paused, restarting, exited, dead, removing
    state: str
    # `Up 5 minutes`
    status: str
    # healthy, unhealthy, starting, or nothing
    health: str = ""
    service: str = ""
    ports: tuple[PortLink, ...] = ()
    created: int = 0

    @property
    def runs(self) -> bool:
        return self.state in ("running", "paused", "restarting")


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The containers of one project; those of none have no name."""

    name: str
    rows: tuple[Row, ...]

    @property
    def running(self) -> int:
        return sum(row.state == "running" for row in self.rows)


def grouped(containers: Iterable[Mapping[str, Any]], hostname: str) -> list[Group]:
    """Groups by name, those that belong to no project last; inside of each by service and name."""
    groups: dict[str, list[Row]] = {}
    for attrs in containers:
        groups.setdefault(_label(attrs, _PROJECTS), []).append(row(attrs, hostname))
    names = sorted(groups, key=lambda name: (not name, name.lower()))
    return [
        Group(name=name, rows=tuple(sorted(groups[name], key=lambda row: (row.service.lower(), row.name.lower()))))
        for name in names
    ]


def row(attrs: Mapping[str, Any], hostname: str) -> Row:
    """One container of the API's list."""
    status = str(attrs.get("Status") or "")
    found = _HEALTH.search(status)
    return Row(
        id=str(attrs.get("Id", "")),
        name=str((attrs.get("Names") or [""])[0]).removeprefix("/"),
        image=str(attrs.get("Image", "")),
        state=str(attrs.get("State", "")),
        status=_HEALTH.sub("", status).strip(),
        health=found[1].removeprefix("health: ") if found else "",
        service=_label(attrs, _SERVICES),
        ports=ports(attrs.get("Ports") or (), hostname),
        created=int(attrs.get("Created") or 0),
    )


def ports(published: Iterable[Mapping[str, Any]], hostname: str) -> tuple[PortLink, ...]:
    """Published ports, each once though it may be bound for IPv4 and IPv6."""
    links: dict[tuple[int, int, str], PortLink] = {}
    for each in published:
        inner, outer, kind = int(each.get("PrivatePort") or 0), int(each.get("PublicPort") or 0), str(each.get("Type"))
        if not outer:
            continue
        scheme = "https" if inner in _SECURE_PORTS else "http"
        url = f"{scheme}://{_reached(str(each.get('IP') or ''), hostname)}:{outer}/" if kind == "tcp" else ""
        links.setdefault((outer, inner, kind), PortLink(f"{outer}→{inner}/{kind}", url))
    return tuple(links[key] for key in sorted(links))


def _reached(address: str, hostname: str) -> str:
    """What to call the host by whose port is bound to an address."""
    if address in ("", "0.0.0.0", "::"):
        return hostname
    return f"[{address}]" if ":" in address else address


def _label(attrs: Mapping[str, Any], names: Iterable[str]) -> str:
    labels = attrs.get("Labels") or {}
    return next((str(labels[name]) for name in names if labels.get(name)), "")
