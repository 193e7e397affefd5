"""The containers that a client means with its filters. Pure: records in, records out, newest first."""

import builtins
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable

from husk.engine.model.container import Container, Endpoint
from husk.engine.model.filters import Filters
from husk.engine.networks.port_requests import PortRange, PortSet, exposed
from husk.errors import InvalidParameter
from husk.text.patterns import pattern
from husk.text.re2 import Finder

FILTERS = (
    "ancestor", "before", "expose", "exited", "health", "id", "isolation", "is-task", "label", "name", "network",
    "publish", "since", "status", "volume",
)  # fmt: skip
STATUSES = ("created", "running", "paused", "restarting", "removing", "exited", "dead")
_PORTS = pattern(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
HEALTH = ("none", "starting", "healthy", "unhealthy")


def select(
    records: Iterable[Container],
    all: bool,
    limit: int,
    filters: Filters,
    find: Callable[[str], Container],
    ancestors: Callable[[str], set[str]],
) -> list[Container]:
    """`find` resolves a container reference, `ancestors` an image reference to the ids of images built on it."""
    everything = all or limit > 0 or bool(filters.get("status"))
    records = list(records)
    tests = _tests(filters, [c.id for c in records], find, ancestors)
    chosen = sorted(records, key=lambda c: c.created_ns, reverse=True)
    chosen = [c for c in chosen if (everything or c.state.running) and _passes(c, tests)]
    return chosen[:limit] if limit > 0 else chosen


Test = Callable[[Container], bool]


def _passes(container: Container, tests: list[Test]) -> bool:
    return builtins.all(test(container) for test in tests)


def _tests(
    filters: Filters, ids: Iterable[str], find: Callable[[str], Container], ancestors: Callable[[str], set[str]]
) -> list[Test]:
    tests: list[Test] = []
    if values := filters.get("id"):
        ordered = sorted(ids)
        chosen = {match for v in values if (match := _only_id(ordered, v))}
        tests.append(lambda c: c.id in chosen)
    if values := filters.get("name"):
        names = Finder(values)
        tests.append(lambda c: names.finds(c.name) or names.finds("/" + c.name))
    if statuses := filters.get("status"):
        _known("status", "state", statuses, STATUSES)
        tests.append(lambda c: c.state.status in statuses)
    if healths := filters.get("health"):
        _known("health", "health", healths, HEALTH)
        tests.append(lambda c: (c.state.health.status if c.state.health else "none") in healths)
    if filters.get("exited"):
        codes = filters.numbers("exited")
        tests.append(lambda c: c.state.status == "exited" and c.state.exit_code in codes)
    if filters.get("label"):
        tests.append(lambda c: filters.matches_labels(c.config.labels))
    if networks := tuple(filters.get("network")):
        tests.append(lambda c: any(_is_on(e, networks) for e in c.endpoints.values()))
    if volumes := filters.get("volume"):
        tests.append(lambda c: any((m.name or m.source) in volumes or m.destination in volumes for m in c.mounts))
    if values := filters.get("expose"):
        ports = PortSet(_ports("expose", v) for v in values)
        tests.append(lambda c: any(ports.meets(p.first, p.last, p.protocol) for p in _exposed(c)))
    if values := filters.get("publish"):
        published = PortSet(_ports("publish", v) for v in values)
        tests.append(lambda c: any(published.meets(p.host_port, p.host_port, p.protocol) for p in c.published))
    if values := filters.get("ancestor"):
        images = {i for v in values for i in ancestors(v)}
        tests.append(lambda c: c.image_id in images)
    if "is-task" in filters:
        wanted = filters.boolean("is-task", False)
        tests.append(lambda c: ("com.docker.swarm.task.id" in c.config.labels) == wanted)
    if values := filters.get("before"):
        edge = min(find(v).created_ns for v in values)
        tests.append(lambda c: c.created_ns < edge)
    if values := filters.get("since"):
        since = max(find(v).created_ns for v in values)
        tests.append(lambda c: c.created_ns > since)
    return tests


def _is_on(endpoint: Endpoint, networks: tuple[str, ...]) -> bool:
    return endpoint.network_name in networks or endpoint.network_id.startswith(networks)


def _only_id(ordered: list[str], prefix: str) -> str | None:
    """The one id that begins so."""
    place = bisect_left(ordered, prefix)
    found = [each for each in ordered[place : place + 2] if prefix and each.startswith(prefix)]
    return found[0] if len(found) == 1 else None


def _known(key: str, what: str, values: list[str], accepted: tuple[str, ...]) -> None:
    for value in values:
        if value not in accepted:
            raise InvalidParameter(
                f"invalid filter '{key}={value}': invalid value for {what} ({value}): "
                f"must be one of {', '.join(accepted)}"
            )


def _exposed(container: Container) -> Iterable[PortRange]:
    """The ports of a container that runs on a network; to dockerd one that does not has none."""
    if container.state.status not in ("running", "paused") or not container.sandbox_path:
        return ()
    return exposed(container.config, container.host_config)


def _ports(key: str, text: str) -> tuple[int, int, str]:
    """(first, last, protocol) of what a filter names."""
    if ":" in text:
        raise InvalidParameter(f"filter for '{key}' should not contain ':': {text}")
    numbers, _, protocol = text.partition("/")
    match = _PORTS.fullmatch(numbers)
    begin, end = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if not 0 <= begin <= end <= 65535:
        raise InvalidParameter(f"error while looking up for {key} {text}: invalid port range")
    return begin, end, protocol or "tcp"
