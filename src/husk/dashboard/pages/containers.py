"""The list of containers, and what can be done to one of them."""

from collections.abc import Awaitable, Callable

from husk.api.http.response import Answer
from husk.client.container import Container
from husk.dashboard.grouping import grouped
from husk.dashboard.router import PageRoute, change, page
from husk.dashboard.visit import Visit


async def containers(visit: Visit) -> Answer:
    """All containers by project; `?show=running` those that run."""
    only_running = visit.query.get("show") == "running"
    found = await visit.engine.containers.list(all=not only_running)
    groups = grouped([each.attrs for each in found], visit.hostname)
    running = sum(group.running for group in groups)
    return visit.page(
        "containers.html",
        groups=groups,
        count=len(found),
        running=running,
        only_running=only_running,
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
        **inputs,
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
