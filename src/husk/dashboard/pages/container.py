"""One container: what it is, uses, has in its environment, and runs."""

from typing import Any, NamedTuple

from husk.api.http.response import Answer
from husk.client.container import Container
from husk.client.diagnosis import Reason, examine, explain, last_lines
from husk.dashboard.grouping import PortLink, ports
from husk.dashboard.router import page
from husk.dashboard.sampling import series
from husk.dashboard.secret_words import masked, variables, without_secrets
from husk.dashboard.visit import Visit

TABS = (
    ("", "Overview"),
    ("/logs", "Logs"),
    ("/stats", "Stats"),
    ("/terminal", "Terminal"),
    ("/files", "Files"),
    ("/processes", "Processes"),
    ("/environment", "Environment"),
    ("/inspect", "Inspect"),
)


async def found(visit: Visit) -> Container:
    """The container that the path names."""
    return await visit.engine.containers.get(visit.words["name"])


def shown(visit: Visit, container: Container, template: str, tab: str, **values: Any) -> Answer:
    """A page of a container, with its name, its state and the way to its other pages."""
    state = container.attrs.get("State") or {}
    health = str((state.get("Health") or {}).get("Status") or "")
    return visit.page(
        template,
        name=container.name,
        id=container.id,
        state=container.status,
        health="" if health == "none" else health,
        runs=container.status in ("running", "paused", "restarting"),
        tabs=TABS,
        tab=tab,
        **values,
    )


async def overview(visit: Visit) -> Answer:
    container = await found(visit)
    attrs = without_secrets(container.attrs) if visit.site.read_only else container.attrs
    config, host = attrs.get("Config") or {}, attrs.get("HostConfig") or {}
    why = await _why(visit, container, attrs)
    return shown(
        visit,
        container,
        "container.html",
        "",
        why=why,
        attrs=attrs,
        config=config,
        host=host,
        command=[str(attrs.get("Path") or ""), *(attrs.get("Args") or ())],
        links=_links(container, visit.hostname),
        networks=(attrs.get("NetworkSettings") or {}).get("Networks") or {},
        mounts=attrs.get("Mounts") or [],
        labels=sorted(visit.values(container.labels).items()),
        sample=visit.site.sampler.latest(container.id),
    )


class LastCheck(NamedTuple):
    """A run of the check: its command, what it printed, its status, and when it ended."""

    command: str
    output: str
    code: int
    ended: str


class Why(NamedTuple):
    """The things that are wrong with a container: the reasons, its last lines, and the last check of its health."""

    reasons: list[Reason]
    lines: list[str]
    check: LastCheck | None


async def _why(visit: Visit, container: Container, attrs: dict[str, Any]) -> Why | None:
    """Tell why it is not well; None for one that is. `attrs` are what the page may show of it."""
    if container.status == "running" and not _is_unhealthy(attrs):
        return None
    reasons = explain(await examine(visit.engine, container))
    wrong = [each for each in reasons if each.verdict != "ok" and each.name != "state"]
    if not any(each.verdict == "bad" or each.name == "health" for each in wrong):
        return None
    if visit.site.read_only:
        wrong = [each._replace(detail=masked(each.detail)) for each in wrong]
    return Why(wrong, await last_lines(container), _last_check(attrs))


def _is_unhealthy(attrs: dict[str, Any]) -> bool:
    return ((attrs.get("State") or {}).get("Health") or {}).get("Status") == "unhealthy"


def _last_check(attrs: dict[str, Any]) -> LastCheck | None:
    log = ((attrs.get("State") or {}).get("Health") or {}).get("Log") or []
    if not log:
        return None
    test = ((attrs.get("Config") or {}).get("Healthcheck") or {}).get("Test") or []
    last = log[-1]
    words = " ".join(str(word) for word in test[1:] or test)
    return LastCheck(words, str(last.get("Output") or ""), int(last.get("ExitCode") or 0), str(last.get("End") or ""))


def _links(container: Container, hostname: str) -> tuple[PortLink, ...]:
    """Its published ports in the form that a list has them in."""
    published = [
        {"IP": address, "PrivatePort": port.partition("/")[0], "PublicPort": number, "Type": port.partition("/")[2]}
        for port, bound in container.ports.items()
        for address, number in bound
    ]
    return ports(published, hostname)


async def stats(visit: Visit) -> Answer:
    container = await found(visit)
    return shown(visit, container, "container_stats.html", "/stats", sample=visit.site.sampler.latest(container.id))


async def history(visit: Visit) -> Answer:
    """The points of the charts of the last hour."""
    container = await found(visit)
    return visit.json({"series": series(visit.site.sampler.history(container.id))})


async def processes(visit: Visit) -> Answer:
    container = await found(visit)
    listed = await container.top() if container.status == "running" else {"Titles": [], "Processes": []}
    rows = listed.get("Processes") or []
    if visit.site.read_only:
        rows = [[masked(str(value)) for value in row] for row in rows]
    return shown(
        visit,
        container,
        "container_processes.html",
        "/processes",
        titles=listed.get("Titles") or [],
        rows=rows,
    )


async def environment(visit: Visit) -> Answer:
    """Its variables; `?show=NAME` shows one that is a secret, `?show=*` all, but not where nothing can be changed."""
    container = await found(visit)
    config = container.attrs.get("Config") or {}
    told = variables(config.get("Env"), "" if visit.site.read_only else visit.query.get("show"))
    return shown(visit, container, "container_environment.html", "/environment", variables=told)


async def inspect(visit: Visit) -> Answer:
    """All that is known of it, as a tree; `?secrets=show` with the secrets of its environment."""
    container = await found(visit)
    secrets = visit.query.get("secrets") == "show" and not visit.site.read_only
    tree = container.attrs if secrets else without_secrets(container.attrs)
    return shown(visit, container, "container_inspect.html", "/inspect", tree=tree, secrets=secrets)


ROUTES = (
    page("/containers/{name}", overview),
    page("/containers/{name}/stats", stats),
    page("/containers/{name}/history", history),
    page("/containers/{name}/processes", processes),
    page("/containers/{name}/environment", environment),
    page("/containers/{name}/inspect", inspect),
)
