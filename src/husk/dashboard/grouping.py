"""Containers as people think of them: by Compose project or stack, and by service. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

_PROJECT, _STACK = "com.docker.compose.project", "com.docker.stack.namespace"
_DEPENDS_ON = "com.docker.compose.depends_on"
_SERVICES = ("com.docker.compose.service", "com.docker.swarm.service.name")
_HEALTH = re.compile(r"\((healthy|unhealthy|health: starting)\)")
_OTHER_NAMES = {"127.0.0.1": "localhost", "[::1]": "localhost", "localhost": "127.0.0.1"}
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
    # Those of a stack are started and ended by its services alone.
    is_stack: bool = False

    @property
    def is_project(self) -> bool:
        return bool(self.name) and not self.is_stack

    @property
    def alive(self) -> int:
        return sum(row.runs for row in self.rows)

    @property
    def running(self) -> int:
        return sum(row.state == "running" for row in self.rows)


def grouped(containers: Iterable[Mapping[str, Any]], hostname: str) -> list[Group]:
    """Groups by name, those that belong to no project last; inside of each by service and name."""
    groups: dict[tuple[str, bool], list[Row]] = {}
    for attrs in containers:
        project, stack = _label(attrs, (_PROJECT,)), _label(attrs, (_STACK,))
        groups.setdefault((project or stack, not project and bool(stack)), []).append(row(attrs, hostname))
    return [
        Group(
            name=name,
            is_stack=is_stack,
            rows=tuple(sorted(groups[name, is_stack], key=lambda row: (row.service.lower(), row.name.lower()))),
        )
        for name, is_stack in sorted(groups, key=lambda key: (not key[0], key[0].lower(), key[1]))
    ]


def in_order(containers: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """The ids of containers of one project in rows: what a row depends on is in those before it. Services that depend
    on each other in a circle are one row."""
    services: dict[str, list[str]] = {}
    needs: dict[str, set[str]] = {}
    for attrs in containers:
        service = _label(attrs, _SERVICES)
        services.setdefault(service, []).append(str(attrs.get("Id", "")))
        needs.setdefault(service, set()).update(needed_by(attrs))
    rows: list[list[str]] = []
    left = dict(needs)
    while left:
        ready = [service for service in left if not (needs[service] - {service}) & left.keys()] or list(left)
        rows.append([each for service in sorted(ready) for each in services[service]])
        for service in ready:
            del left[service]
    return rows


def needed_by(attrs: Mapping[str, Any]) -> dict[str, str]:
    """The services that a container depends on, and what must be true of each before it starts: `service_started`,
    `service_healthy` or `service_completed_successfully`."""
    # `db:service_healthy:false,cache:service_started:true`
    parts = [each.split(":") for each in _label(attrs, (_DEPENDS_ON,)).split(",") if each]
    return {each[0]: each[1] if len(each) > 1 else "service_started" for each in parts}


def service_of(attrs: Mapping[str, Any]) -> str:
    return _label(attrs, _SERVICES)


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
    """Name the host for links to a port that is bound to an address: on the loopback not as the dashboard is called,
    whose cookies and pages are then another site's."""
    if address in ("", "0.0.0.0", "::"):
        return _OTHER_NAMES.get(hostname, hostname)
    name = f"[{address}]" if ":" in address else address
    return _OTHER_NAMES.get(name, name) if name == hostname else name


def _label(attrs: Mapping[str, Any], names: Iterable[str]) -> str:
    labels = attrs.get("Labels") or {}
    return next((str(labels[name]) for name in names if labels.get(name)), "")
