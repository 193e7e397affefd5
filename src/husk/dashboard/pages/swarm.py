"""Services and their tasks, nodes, and the names of secrets and configs."""

from husk.api.http.response import Answer
from husk.client.services import Service, Task
from husk.dashboard.router import PageRoute, change, page
from husk.dashboard.sorting import Column, sorting
from husk.dashboard.visit import Visit
from husk.errors import InvalidParameter
from husk.text.digits import read_number

_MOST_REPLICAS = 10_000


async def _is_manager(visit: Visit) -> bool:
    """Tell if this engine manages a swarm. Without one there are no services."""
    return bool(((await visit.engine.info()).get("Swarm") or {}).get("ControlAvailable"))


async def services(visit: Visit) -> Answer:
    active = await _is_manager(visit)
    order = sorting(visit, _COLUMNS)
    found = order.ordered(await visit.engine.services.list(status=True)) if active else []
    images = {each.id: _image(each) for each in found}
    return visit.page("services.html", active=active, services=found, order=order, images=images)


async def service(visit: Visit) -> Answer:
    found = await visit.engine.services.get(visit.words["service"])
    nodes = {node.id: node.name for node in await visit.engine.nodes.list()}
    tasks = sorted(await found.tasks(), key=_order)
    mode = next(iter((found.attrs.get("Spec") or {}).get("Mode") or {}), "Replicated")
    labels = visit.values(found.labels)
    return visit.page(
        "service.html", service=found, tasks=tasks, nodes=nodes, image=_image(found), mode=mode, labels=labels
    )


async def scale(visit: Visit) -> Answer:
    found = await visit.engine.services.get(visit.words["service"])
    text = visit.form.get("replicas")
    if (count := read_number(text, most=_MOST_REPLICAS)) is None:
        raise InvalidParameter(f"how many? {text!r} is not a number from 0 to {_MOST_REPLICAS}")
    await found.scale(count)
    return visit.redirect(f"/services/{found.name}", f"{found.name} shall have {text} tasks.")


async def rollback(visit: Visit) -> Answer:
    found = await visit.engine.services.get(visit.words["service"])
    await found.rollback()
    return visit.redirect(f"/services/{found.name}", f"{found.name} goes back to what it was.")


async def ask_remove(visit: Visit) -> Answer:
    found = await visit.engine.services.get(visit.words["service"])
    return visit.confirm(
        f"Remove the service {found.name}?",
        details="Its tasks end, and their containers are removed.",
        verb="Remove",
        back=f"/services/{found.name}",
    )


async def remove(visit: Visit) -> Answer:
    found = await visit.engine.services.get(visit.words["service"])
    await found.remove()
    return visit.redirect("/services", f"The service {found.name} was removed.")


async def nodes(visit: Visit) -> Answer:
    active = await _is_manager(visit)
    return visit.page("nodes.html", active=active, nodes=await visit.engine.nodes.list() if active else [])


async def secrets(visit: Visit) -> Answer:
    active = await _is_manager(visit)
    kept = sorted(await visit.engine.secrets.list(), key=lambda each: each.name) if active else []
    configs = sorted(await visit.engine.configs.list(), key=lambda each: each.name) if active else []
    return visit.page("secrets.html", active=active, secrets=kept, configs=configs)


def _image(service: Service) -> str:
    template = (service.attrs.get("Spec") or {}).get("TaskTemplate") or {}
    return str((template.get("ContainerSpec") or {}).get("Image") or "")


def _lacking(service: Service) -> int:
    """Count the tasks that should run and do not."""
    status = service.attrs.get("ServiceStatus") or {}
    return int(status.get("DesiredTasks") or 0) - int(status.get("RunningTasks") or 0)


_COLUMNS = {
    "name": Column("Name", lambda service: service.name),
    "image": Column("Image", lambda service: (_image(service), service.name)),
    # What lacks most comes first.
    "tasks": Column("Tasks", _lacking, is_number=True),
    "changed": Column("Changed", lambda service: service.attrs.get("UpdatedAt"), is_number=True),
}


def _order(task: Task) -> tuple[bool, int, str]:
    """Those that shall run first, each slot's newest first."""
    return task.desired_state != "running", task.slot, str(task.attrs.get("CreatedAt", ""))


ROUTES: tuple[PageRoute, ...] = (
    page("/services", services),
    page("/services/{service}", service),
    change("/services/{service}/scale", scale),
    change("/services/{service}/rollback", rollback),
    page("/services/{service}/remove", ask_remove),
    change("/services/{service}/remove", remove),
    page("/nodes", nodes),
    page("/secrets", secrets),
)
