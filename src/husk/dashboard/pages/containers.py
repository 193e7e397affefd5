"""The list of containers, and what can be done to one of them."""

from collections.abc import Awaitable, Callable

from husk.api.http.response import Answer
from husk.client.container import Container
from husk.dashboard.grouping import Row, group_of, grouped, newest_failures, row
from husk.dashboard.router import PageRoute, change, page
from husk.dashboard.sampling import Sampler
from husk.dashboard.sorting import Column, part, sorting
from husk.dashboard.visit import Visit

# In the order in which states are sorted.
_TONES = ("bad", "warn", "good", "idle")
# The parts of the list, and what belongs to each.
_SHOWN: dict[str, Callable[[Row], bool]] = {
    "all": lambda row: True,
    "running": lambda row: row.state == "running",
    "stopped": lambda row: not row.runs,
    "trouble": lambda row: row.tone == "bad" or row.state == "restarting",
}


def _columns(sampler: Sampler) -> dict[str, Column]:
    def used(kind: str) -> Callable[[Row], float | None]:
        return lambda row: sampler.level(row.id, kind) if row.state == "running" else None

    return {
        "name": Column("Name", lambda row: (row.service.lower(), row.name.lower())),
        "state": Column("State", lambda row: (_TONES.index(row.tone), row.word)),
        "image": Column("Image", lambda row: row.image.lower()),
        "ports": Column("Ports", lambda row: row.ports[0].number if row.ports else None, is_number=True),
        "cpu": Column("Processor", used("cpu"), is_number=True),
        "memory": Column("Memory", used("memory"), is_number=True),
        "network": Column("Network", used("network"), is_number=True),
        "disk": Column("Disk", used("disk"), is_number=True),
    }


async def containers(visit: Visit) -> Answer:
    """All containers by project; `?show=` shows a part of them, `?sort=` sorts them within their projects."""
    found = [each.attrs for each in await visit.engine.containers.list(all=True)]
    kinds = {str(attrs.get("Id", "")): group_of(attrs) for attrs in found}
    rows = newest_failures(row(attrs, visit.hostname) for attrs in found)
    show = part(visit, _SHOWN)
    order = sorting(visit, _columns(visit.site.sampler))
    shown = order.ordered(filter(_SHOWN[show], rows))
    return visit.page(
        "containers.html",
        groups=grouped(shown, kinds),
        show=show,
        counts={word: sum(map(belongs, rows)) for word, belongs in _SHOWN.items()},
        order=order,
        measured=visit.site.sampler.measured,
    )


def _verb(name: str, done: str, act: Callable[[Container], Awaitable[object]]) -> PageRoute:
    """A change that can be undone: a button does it at once."""

    async def handler(visit: Visit) -> Answer:
        container = await visit.engine.containers.get(visit.words["name"])
        await act(container)
        return visit.back(f"/containers/{container.name}", f"{container.name} {done}.")

    return change(f"/containers/{{name}}/{name}", handler)


async def ask_kill(visit: Visit) -> Answer:
    container = await visit.engine.containers.get(visit.words["name"])
    return visit.confirm(
        f"Kill {container.name}?",
        details="Its processes end at once. What they have not written yet is lost.",
        verb="Kill",
        back="/containers",
    )


async def kill(visit: Visit) -> Answer:
    container = await visit.engine.containers.get(visit.words["name"])
    await container.kill()
    return visit.back("/containers", f"{container.name} was killed.")


async def ask_remove(visit: Visit) -> Answer:
    container = await visit.engine.containers.get(visit.words["name"])
    running = container.status in ("running", "paused", "restarting")
    inputs = {"volumes": "Also remove its volumes that have no name"}
    if running:
        inputs = {"force": "It is running: end it first", **inputs}
    return visit.confirm(
        f"Remove {container.name}?",
        details="The container, its log and all that it wrote to its own files are gone then.",
        verb="Remove",
        back="/containers",
        inputs=inputs,
    )


async def remove(visit: Visit) -> Answer:
    container = await visit.engine.containers.get(visit.words["name"])
    await container.remove(force="force" in visit.form, volumes="volumes" in visit.form)
    return visit.redirect("/containers", f"{container.name} was removed.")


ROUTES = (
    page("/containers", containers),
    _verb("start", "was started", Container.start),
    _verb("stop", "was stopped", Container.stop),
    _verb("restart", "was restarted", Container.restart),
    _verb("pause", "is paused", Container.pause),
    _verb("unpause", "goes on", Container.unpause),
    page("/containers/{name}/kill", ask_kill),
    change("/containers/{name}/kill", kill),
    page("/containers/{name}/remove", ask_remove),
    change("/containers/{name}/remove", remove),
)
