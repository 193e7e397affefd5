"""Containers as people think of them: by Compose project, stack or service of a swarm. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

_PROJECT, _STACK = "com.docker.compose.project", "com.docker.stack.namespace"
_DEPENDS_ON = "com.docker.compose.depends_on"
_SWARM_SERVICE, _TASK = "com.docker.swarm.service.name", "com.docker.swarm.task.name"
_SERVICES = ("com.docker.compose.service", _SWARM_SERVICE)
_EXITED = re.compile(r"Exited \((\d+)\) ")
_SHORT_UNITS = {"second": "s", "minute": "min", "hour": "h", "day": "d", "week": "w", "month": "mo", "year": "y"}
_AGE = re.compile(r"(\d{1,4}|an?) (second|minute|hour|day|week|month|year)s?")
_HEALTH = re.compile(r"\((healthy|unhealthy|health: starting)\)")
# As much of a status is looked at: engines say `Exited (137) About an hour ago`.
_LONGEST_STATUS = 200
_OTHER_NAMES = {"127.0.0.1": "localhost", "[::1]": "localhost", "localhost": "127.0.0.1"}
_SECURE_PORTS = (443, 8443, 9443)


class PortLink(msgspec.Struct, frozen=True):
    """A published port: what to show, and the address to open; none for what no browser speaks."""

    text: str
    url: str = ""
    number: int = 0


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
    # The labels, for who looks for one.
    labels: str = ""
    # `web.1`: a task of a swarm's service, whose container has a long name.
    task: str = ""
    # How many containers of this service have ended, where this one, the newest of them, stands for all.
    ended: int = 0

    @property
    def runs(self) -> bool:
        return self.state in ("running", "paused", "restarting")

    @property
    def exit_code(self) -> int | None:
        """The status of one that has ended."""
        found = _EXITED.match(self.status)
        return int(found[1]) if found else None

    @property
    def tone(self) -> str:
        """The colour of its state: good, warn, bad or idle."""
        if self.health == "unhealthy" or self.state == "dead" or self.exit_code:
            return "bad"
        if self.state in ("paused", "restarting", "removing") or self.health == "starting":
            return "warn"
        return "good" if self.state == "running" else "idle"

    @property
    def word(self) -> str:
        """Its state in a word or two: `running`, `unhealthy`, `exited 3`."""
        if self.exit_code is not None:
            return f"exited {self.exit_code}"
        return self.health if self.state == "running" and self.health else self.state

    @property
    def age(self) -> str:
        """The time since it is so, in short: `47 s`; empty for one that never ran."""
        found = _AGE.search(self.status)
        if not found:
            return ""
        count = "1" if found[1].startswith("a") else found[1]
        return f"{count} {_SHORT_UNITS[found[2]]}"

    @property
    def haystack(self) -> str:
        """All that a search in a list looks at."""
        ports = " ".join(port.text for port in self.ports)
        return f"{self.name} {self.id[:12]} {self.image} {self.service} {ports} {self.labels}".lower()


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The containers of one project, stack or service; those of none have no name."""

    name: str
    rows: tuple[Row, ...]
    # `project`, `stack` or `service`; empty for containers of none. Those of the latter two are started and ended by
    # the swarm alone.
    kind: str = ""

    @property
    def id(self) -> str:
        """Its name for pages."""
        return f"{self.kind}-{self.name}" if self.name else "others"

    @property
    def is_project(self) -> bool:
        return self.kind == "project"

    @property
    def tone(self) -> str:
        """The worst of its containers'."""
        return next((tone for tone in ("bad", "warn", "good") if any(row.tone == tone for row in self.rows)), "idle")

    @property
    def alive(self) -> int:
        return sum(row.runs for row in self.rows)

    @property
    def running(self) -> int:
        return sum(row.state == "running" for row in self.rows)


def grouped(rows: Iterable[Row], kinds: Mapping[str, tuple[str, str]]) -> list[Group]:
    """Put rows, in their order, into groups by name; those that belong to none come last.

    `kinds` has the kind and the name of each row's group by the row's id, as `group_of` tells them.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for each in rows:
        groups.setdefault(kinds[each.id], []).append(each)
    return [
        Group(name=key[1], kind=key[0], rows=tuple(groups[key]))
        for key in sorted(groups, key=lambda key: (not key[1], key[1].lower(), key[0]))
    ]


def group_of(attrs: Mapping[str, Any]) -> tuple[str, str]:
    """The kind and the name of the group that a container of the API's list belongs to; empty for none."""
    for kind, label in (("project", _PROJECT), ("stack", _STACK), ("service", _SWARM_SERVICE)):
        if name := _label(attrs, (label,)):
            return kind, name
    return "", ""


def newest_failures(rows: Iterable[Row]) -> list[Row]:
    """Leave of the ended tasks of each service of a swarm the newest alone, which then tells how many there are."""
    ended: dict[str, list[Row]] = {}
    left = []
    for each in rows:
        if each.task and not each.runs and each.state != "created":
            ended.setdefault(each.service, []).append(each)
        else:
            left.append(each)
    newest = (replace(max(each, key=lambda row: row.created), ended=len(each)) for each in ended.values())
    return [*left, *newest]


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
    status = str(attrs.get("Status") or "")[:_LONGEST_STATUS]
    found = _HEALTH.search(status)
    task = _label(attrs, (_TASK,))
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
        labels=" ".join(f"{name}={value}" for name, value in (attrs.get("Labels") or {}).items()),
        task=task.rpartition(".")[0] or task,
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
        links.setdefault((outer, inner, kind), PortLink(f"{outer}→{inner}/{kind}", url, outer))
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
