"""Networks: who is on which, drawn; taking a container off, and removing networks."""

from husk.api.http.response import Answer
from husk.dashboard.drawing import LEFT_EDGE, RIGHT_EDGE, WIDTH, picture
from husk.dashboard.router import PageRoute, change, page
from husk.dashboard.sorting import Column, sorting
from husk.dashboard.visit import Visit

_COLUMNS = {
    "name": Column("Name", lambda network: network.name),
    "driver": Column("Driver", lambda network: (network.driver, network.name)),
    "subnets": Column("Subnets", lambda network: (network.subnets, network.name)),
    "scope": Column("Scope", lambda network: (str(network.attrs.get("Scope")), network.name)),
}


async def networks(visit: Visit) -> Answer:
    found = await visit.engine.networks.list()
    order = sorting(visit, _COLUMNS)
    containers = await visit.engine.containers.list()
    drawn = picture([each.attrs for each in found], [each.attrs for each in containers])
    edges = {"left": LEFT_EDGE, "right": RIGHT_EDGE, "width": WIDTH}
    return visit.page("networks.html", networks=order.ordered(found), order=order, picture=drawn, edges=edges)


async def network(visit: Visit) -> Answer:
    found = await visit.engine.networks.get(visit.words["network"])
    return visit.page("network.html", network=found, labels=visit.values(found.labels))


async def create(visit: Visit) -> Answer:
    made = await visit.engine.networks.create(
        visit.form.get("name").strip(), subnet=visit.form.get("subnet").strip(), internal="internal" in visit.form
    )
    return visit.redirect(f"/networks/{made.name}", f"The network {made.name} is there.")


async def disconnect(visit: Visit) -> Answer:
    found = await visit.engine.networks.get(visit.words["network"])
    await found.disconnect(visit.form.get("container"))
    return visit.back(f"/networks/{found.name}", f"The container is not on {found.name} any more.")


async def ask_remove(visit: Visit) -> Answer:
    found = await visit.engine.networks.get(visit.words["network"])
    return visit.confirm(f"Remove the network {found.name}?", verb="Remove", back=f"/networks/{found.name}")


async def remove(visit: Visit) -> Answer:
    found = await visit.engine.networks.get(visit.words["network"])
    await found.remove()
    return visit.redirect("/networks", f"The network {found.name} was removed.")


async def ask_prune(visit: Visit) -> Answer:
    return visit.confirm(
        "Remove networks that nobody is on?",
        details="The engine's own networks stay.",
        verb="Remove",
        back="/networks",
    )


async def prune(visit: Visit) -> Answer:
    gone = (await visit.engine.networks.prune()).get("NetworksDeleted") or []
    return visit.redirect("/networks", f"Removed: {', '.join(gone) or 'none'}.")


ROUTES: tuple[PageRoute, ...] = (
    page("/networks", networks),
    change("/networks/create", create),
    page("/networks/prune", ask_prune),
    change("/networks/prune", prune),
    page("/networks/{network}", network),
    change("/networks/{network}/disconnect", disconnect),
    page("/networks/{network}/remove", ask_remove),
    change("/networks/{network}/remove", remove),
)
