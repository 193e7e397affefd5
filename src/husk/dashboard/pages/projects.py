"""Compose projects as a whole: start, stop, restart and remove all that belongs to one."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from husk.api.http.response import Answer
from husk.client.container import Container
from husk.dashboard.awaiting import until_ready
from husk.dashboard.drawing import name_of
from husk.dashboard.grouping import in_order
from husk.dashboard.router import PageRoute, change, page
from husk.dashboard.visit import Visit
from husk.errors import HuskError, NotFound

_LABEL = "com.docker.compose.project"
_ALIVE = ("running", "paused", "restarting")


async def _containers(visit: Visit) -> list[Container]:
    """Those of the project that the path names; NotFound where it has none."""
    name = visit.words["project"]
    found = await visit.engine.containers.list(all=True, filters=_of(name))
    if not found:
        raise NotFound(f"no such project: {name}")
    return found


def _of(project: str) -> dict[str, list[str]]:
    return {"label": [f"{_LABEL}={project}"]}


async def _each(containers: Iterable[Container], act: Callable[[Container], Awaitable[object]], *, ends: bool) -> None:
    """Run `act` on all, those that others depend on first, or last where it ends them. Containers in no order go
    together. The first failure is raised when all of its row have been tried."""
    rows = in_order([each.attrs for each in containers])
    by_id = {each.id: each for each in containers}
    for row in reversed(rows) if ends else rows:
        done = await asyncio.gather(*(act(by_id[each]) for each in row), return_exceptions=True)
        for identifier, failure in zip(row, done, strict=True):
            if isinstance(failure, HuskError):
                raise type(failure)(f"{name_of(by_id[identifier].attrs)}: {failure.message}") from failure
            if isinstance(failure, BaseException):
                raise failure


def _told(visit: Visit, containers: list[Container], done: str) -> Answer:
    many = f"{len(containers)} container{'s' if len(containers) != 1 else ''}"
    return visit.back("/containers", f"{visit.words['project']}: {many} {done}.")


async def start(visit: Visit) -> Answer:
    """Start a project. A container that others need healthy, or ended well, is waited for before these start."""
    found = await _containers(visit)
    idle = [each for each in found if each.attrs.get("State") not in _ALIVE]

    async def begin(container: Container) -> None:
        await until_ready(visit.engine, container, found)
        await container.start()

    await _each(idle, begin, ends=False)
    return _told(visit, idle, "started")


async def stop(visit: Visit) -> Answer:
    alive = [each for each in await _containers(visit) if each.attrs.get("State") in _ALIVE]
    await _each(alive, Container.stop, ends=True)
    return _told(visit, alive, "stopped")


async def restart(visit: Visit) -> Answer:
    found = await _containers(visit)
    await _each(found, Container.restart, ends=False)
    return _told(visit, found, "restarted")


async def ask_remove(visit: Visit) -> Answer:
    found = await _containers(visit)
    names = ", ".join(sorted(name_of(each.attrs) for each in found))
    volumes = await visit.engine.volumes.list(filters=_of(visit.words["project"]))
    inputs = {"volumes": f"Also its volumes, with all files in them: {', '.join(each.name for each in volumes)}"}
    return visit.confirm(
        f"Remove the project {visit.words['project']}?",
        details=f"Its containers are ended and removed, with their logs and all that they wrote to their own files: "
        f"{names}. Its networks go with them.",
        verb="Remove",
        back="/containers",
        inputs=inputs if volumes else {},
    )


async def remove(visit: Visit) -> Answer:
    """As `docker compose down` does it: containers, networks, and volumes where that was ticked."""
    name = visit.words["project"]
    found = await _containers(visit)

    async def end(container: Container) -> None:
        if container.attrs.get("State") in _ALIVE:
            await container.stop()
        await container.remove(force=True, volumes="volumes" in visit.form)

    await _each(found, end, ends=True)
    for network in await visit.engine.networks.list(filters=_of(name)):
        await network.remove()
    if "volumes" in visit.form:
        for volume in await visit.engine.volumes.list(filters=_of(name)):
            await volume.remove()
    return visit.redirect("/containers", f"The project {name} was removed.")


ROUTES: tuple[PageRoute, ...] = (
    change("/projects/{project}/start", start),
    change("/projects/{project}/stop", stop),
    change("/projects/{project}/restart", restart),
    page("/projects/{project}/remove", ask_remove),
    change("/projects/{project}/remove", remove),
)
