"""Networks and volumes, as far as clients can look at them."""

from aiohttp import web
from msgspec import UNSET, UnsetType

from husk.api.call import Call
from husk.api.router import read
from husk.api.types.networks import NetworkContainer, VolumeList
from husk.api.versioning import Version
from husk.api.views import networks as views
from husk.engine.filters import Filters

WITHOUT_CONTAINERS_IN_LIST = Version(1, 52)
VOLUME_FILTERS = ("dangling", "driver", "label", "label!", "name")


async def listing(call: Call) -> web.StreamResponse:
    filters = Filters.parse(call.text("filters"), views.FILTERS)
    dangling = filters.boolean("dangling", False) if "dangling" in filters else None
    containers: dict[str, NetworkContainer] | UnsetType = UNSET if call.version >= WITHOUT_CONTAINERS_IN_LIST else {}
    return call.json(
        [
            views.network(network, containers)
            for network in call.engine.networks.listing()
            # the networks that are always there are never dangling
            if views.matches(network, filters) and dangling is not True
        ]
    )


async def inspect(call: Call) -> web.StreamResponse:
    network = call.engine.networks.find(call.argument)
    containers = call.engine.containers.listing(False, 0, Filters())
    return call.json(views.network(network, views.containers_on(network, containers)))


async def volumes(call: Call) -> web.StreamResponse:
    Filters.parse(call.text("filters"), VOLUME_FILTERS)
    return call.json(VolumeList(volumes=[]))


ROUTES = (
    read("/networks", listing),
    read("/networks/{id}", inspect),
    read("/volumes", volumes),
)
