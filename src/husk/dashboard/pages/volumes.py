"""Volumes: where they are and who has them; making and removing them."""

from husk.api.http.response import Answer
from husk.client.container import Container
from husk.dashboard.drawing import name_of
from husk.dashboard.rendering import size
from husk.dashboard.router import PageRoute, change, page
from husk.dashboard.sorting import Column, sorting
from husk.dashboard.usage import unused_volumes, volumes_size
from husk.dashboard.visit import Visit


async def volumes(visit: Visit) -> Answer:
    found = await visit.engine.volumes.list()
    users = _users(await visit.engine.containers.list(all=True))
    columns = {
        "name": Column("Name", lambda volume: volume.name),
        "driver": Column("Driver", lambda volume: (volume.driver, volume.name)),
        "created": Column("Created", lambda volume: volume.attrs.get("CreatedAt"), is_number=True),
        "containers": Column("Containers", lambda volume: len(users.get(volume.name, [])), is_number=True),
    }
    order = sorting(visit, columns)
    return visit.page("volumes.html", volumes=order.ordered(found), order=order, users=users)


async def volume(visit: Visit) -> Answer:
    found = await visit.engine.volumes.get(visit.words["volume"])
    users = _users(await visit.engine.containers.list(all=True)).get(found.name, [])
    options, labels = visit.values(found.attrs.get("Options")), visit.values(found.labels)
    return visit.page("volume.html", volume=found, users=users, options=options, labels=labels)


async def create(visit: Visit) -> Answer:
    made = await visit.engine.volumes.create(visit.form.get("name").strip())
    return visit.redirect("/volumes", f"The volume {made.name} is there.")


async def ask_remove(visit: Visit) -> Answer:
    found = await visit.engine.volumes.get(visit.words["volume"])
    return visit.confirm(
        f"Remove the volume {found.name}?",
        details="All files in it are gone then.",
        verb="Remove",
        back=f"/volumes/{found.name}",
    )


async def remove(visit: Visit) -> Answer:
    found = await visit.engine.volumes.get(visit.words["volume"])
    await found.remove()
    return visit.redirect("/volumes", f"The volume {found.name} was removed.")


async def ask_prune(visit: Visit) -> Answer:
    nameless, unused = unused_volumes(await visit.engine.df("volume"))
    return visit.confirm(
        "Remove volumes that no container has?",
        details=f"Without a name of their own: {len(nameless)}, which frees {size(volumes_size(nameless))}. "
        f"All: {len(unused)}, which frees {size(volumes_size(unused))}. The files in them are gone then.",
        verb="Remove",
        back="/volumes",
        inputs={"all": "All, also those that were given a name"},
    )


async def prune(visit: Visit) -> Answer:
    told = await visit.engine.volumes.prune({"all": True} if "all" in visit.form else None)
    count = len(told.get("VolumesDeleted") or [])
    return visit.redirect(
        "/volumes", f"{count} volumes were removed, which freed {size(int(told.get('SpaceReclaimed') or 0))}."
    )


def _users(containers: list[Container]) -> dict[str, list[str]]:
    """The names of the containers that have a volume, by its name."""
    found: dict[str, list[str]] = {}
    for container in containers:
        for mount in container.attrs.get("Mounts") or []:
            if mount.get("Type") == "volume":
                found.setdefault(str(mount.get("Name", "")), []).append(name_of(container.attrs))
    return found


ROUTES: tuple[PageRoute, ...] = (
    page("/volumes", volumes),
    change("/volumes/create", create),
    page("/volumes/prune", ask_prune),
    change("/volumes/prune", prune),
    page("/volumes/{volume}", volume),
    page("/volumes/{volume}/remove", ask_remove),
    change("/volumes/{volume}/remove", remove),
)
