"""The things that need a person: containers and services that are not well, each with the reason in plain words."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from husk.client.client import Client
from husk.client.diagnosis import ContainerFacts, Reason, explain
from husk.client.services import Service, Task
from husk.dashboard.grouping import Row
from husk.errors import HuskError, NotFound

# Of how many services and containers the reasons are looked for: it costs a few questions each.
MOST = 6


class Need(NamedTuple):
    """A thing that needs somebody, and its page. The `state` is its state in a word or two."""

    name: str
    path: str
    state: str
    reason: str
    cure: str = ""


class Needs(NamedTuple):
    """The first of them with their reasons, and how many there are in all."""

    first: Sequence[Need]
    in_all: int


async def needs(engine: Client, rows: Iterable[Row], services: Iterable[Service], info: Mapping[str, Any]) -> Needs:
    """The services that lack tasks, then the containers that are not well: those that should run first, the newest
    first among others. Tasks of services that are told already are not told again."""
    short = [each for each in services if _lacks(each)]
    told = {each.name for each in short}
    asked = await asyncio.gather(*map(_of_service, short[:MOST]))
    lacking = [each for each in asked if each is not None]
    wanted = sorted((row for row in rows if row.tone == "bad" and row.service not in told), key=_urgency)
    known = _Engine(engine, info)
    found = await asyncio.gather(*(_of_container(known, row) for row in wanted[: max(0, MOST - len(lacking))]))
    first = [*lacking, *(each for each in found if each is not None)]
    return Needs(first[:MOST], len(short) + len(wanted))


def main_reason(reasons: Sequence[Reason]) -> Reason | None:
    """The reason that tells most: the first bad one that says more than the state, or else the first that is bad or
    poor."""
    telling = [each for each in reasons if each.verdict != "ok"]
    more = [each for each in telling if each.name not in ("state", "restarts")]
    return next((each for each in more if each.verdict == "bad"), next(iter(more or telling), None))


class _Engine:
    """The engine, asked once for what the reasons of several containers need."""

    def __init__(self, engine: Client, info: Mapping[str, Any]) -> None:
        self.engine = engine
        self.info = dict(info)
        self._images: dict[str, asyncio.Future[dict[str, Any] | None]] = {}

    async def image(self, name: str) -> dict[str, Any] | None:
        if name not in self._images:
            self._images[name] = asyncio.get_running_loop().create_future()
            try:
                self._images[name].set_result((await self.engine.images.get(name)).attrs)
            except NotFound:
                self._images[name].set_result(None)
            except BaseException:
                self._images[name].set_result(None)
                raise
        return await self._images[name]


async def _of_container(known: _Engine, row: Row) -> Need | None:
    try:
        container = await known.engine.containers.get(row.id)
        image = await known.image(str(container.attrs.get("Image") or container.image))
    except HuskError:
        return None  # it is gone meanwhile
    reason = main_reason(explain(ContainerFacts(container.attrs, image, known.info)))
    path = f"/containers/{row.name}"
    if reason is None:
        return Need(row.name, path, row.word, row.status)
    return Need(row.name, path, row.word, reason.detail, reason.cure)


def _tasks_of(service: Service) -> tuple[int, int]:
    """Count its tasks that run, and those that should."""
    status = service.attrs.get("ServiceStatus") or {}
    return int(status.get("RunningTasks") or 0), int(status.get("DesiredTasks") or 0)


def _lacks(service: Service) -> bool:
    running, desired = _tasks_of(service)
    return running < desired


async def _of_service(service: Service) -> Need | None:
    running, desired = _tasks_of(service)
    try:
        said = _newest_failure(await service.tasks())
    except HuskError:
        return None  # it is gone meanwhile
    reason = f"not all of its tasks run{f', the newest failure says: {said}' if said else ''}"
    return Need(service.name, f"/services/{service.name}", f"{running} of {desired}", reason)


def _newest_failure(tasks: Iterable[Task]) -> str:
    newest = sorted(tasks, key=lambda task: str(task.attrs.get("CreatedAt", "")), reverse=True)
    statuses = (each.attrs.get("Status") or {} for each in newest)
    return next((str(each["Err"]) for each in statuses if each.get("Err")), "")


def _urgency(row: Row) -> tuple[bool, int]:
    return not row.runs, -row.created
