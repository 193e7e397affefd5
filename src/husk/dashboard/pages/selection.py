"""Actions on several containers at once: those that are ticked in the list."""

import asyncio
from collections.abc import Awaitable, Callable

from husk.api.http.response import Answer
from husk.client.container import Container
from husk.dashboard.drawing import name_of
from husk.dashboard.router import PageRoute, change
from husk.dashboard.visit import Visit
from husk.errors import HuskError, InvalidParameter

_AT_ONCE = 8
_MOST = 1000


async def _ticked(visit: Visit, wanted: list[str]) -> list[Container]:
    """The containers whose ids were ticked and that are still there."""
    if len(wanted) > _MOST:
        raise InvalidParameter(f"{len(wanted)} containers are ticked: at most {_MOST} at once")
    known = {each.id[:12]: each for each in await visit.engine.containers.list(all=True)}
    found = [known[each] for each in dict.fromkeys(wanted) if each in known]
    if not found:
        raise InvalidParameter("no container is ticked: tick those that are meant in the list")
    return found


async def _done(
    visit: Visit, containers: list[Container], act: Callable[[Container], Awaitable[object]], done: str
) -> Answer:
    """Act on all of them, some at a time, and tell how many it worked for and what the first failure said."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(container: Container) -> str:
        async with turns:
            try:
                await act(container)
            except HuskError as error:
                return f"{name_of(container.attrs)}: {error.message}"
            return ""

    failures = [each for each in await asyncio.gather(*map(one, containers)) if each]
    count = len(containers) - len(failures)
    told = f"{count} container{'' if count == 1 else 's'} {done}."
    if failures:
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        told += f" {failures[0]}{more}"
    return visit.back("/containers", told, bad=bool(failures))


def _verb(name: str, done: str, act: Callable[[Container], Awaitable[object]]) -> PageRoute:
    async def handler(visit: Visit) -> Answer:
        return await _done(visit, await _ticked(visit, visit.form.getall("id")), act, done)

    return change(f"/selection/{name}", handler)


async def ask_remove(visit: Visit) -> Answer:
    found = await _ticked(visit, visit.form.getall("id"))
    names = sorted(name_of(each.attrs) for each in found)
    return visit.confirm(
        f"Remove {len(found)} container{'' if len(found) == 1 else 's'}?",
        details=f"Those that run are ended first. Their logs and all that they wrote to their own files are gone then: "
        f"{', '.join(names)}.",
        verb="Remove",
        back="/containers",
        to="/selection/remove",
        kept=[("id", each.id[:12]) for each in found],
        inputs={"volumes": "Also their volumes that have no name"},
    )


async def remove(visit: Visit) -> Answer:
    volumes = "volumes" in visit.form
    found = await _ticked(visit, visit.form.getall("id"))
    return await _done(visit, found, lambda each: each.remove(force=True, volumes=volumes), "removed")


async def logs(visit: Visit) -> Answer:
    found = await _ticked(visit, visit.form.getall("id"))
    return visit.redirect("/logs?" + "&".join(f"id={each.id[:12]}" for each in found))


ROUTES: tuple[PageRoute, ...] = (
    change("/selection/logs", logs),
    _verb("start", "started", Container.start),
    _verb("stop", "stopped", Container.stop),
    _verb("restart", "restarted", Container.restart),
    # It changes nothing, and is a form all the same: what is ticked may be too much for an address.
    change("/selection/ask-remove", ask_remove),
    change("/selection/remove", remove),
)
