"""Volumes: make them, look at them, remove them."""

from husk.api.calls.call import Call
from husk.api.calls.router import change, read
from husk.api.http.response import Answer
from husk.api.types.volumes import Volume, VolumeList, VolumeRequest, VolumesPruned
from husk.api.versioning import Version
from husk.api.views import volumes as views
from husk.engine.model import volume as model
from husk.engine.model.filters import Filters
from husk.engine.volumes.listing import FILTERS, PRUNE_FILTERS
from husk.engine.volumes.spec import VolumeSpec
from husk.errors import InvalidParameter, NotImplementedYet
from husk.text.gojson import Reader

# Before, pruning took every volume that no container has.
PRUNES_ANONYMOUS = Version(1, 42)

_request = Reader(VolumeRequest)


def listing(call: Call) -> Answer:
    filters = Filters.parse(call.text("filters"), FILTERS)
    return call.json(VolumeList(volumes=[_shown(call, volume) for volume in call.engine.volumes.listing(filters)]))


async def create(call: Call) -> Answer:
    document = await call.document()
    if document is None:
        raise InvalidParameter("invalid JSON: got EOF while reading request body")
    request = await call.read(document, _request)
    if request.cluster_volume_spec is not None:
        raise NotImplementedYet("cluster volumes are not implemented by Husk yet")
    spec = call.request.meant = VolumeSpec(request.name, request.driver, request.driver_opts, request.labels)
    volume = await call.engine.volumes.create(spec)
    return call.json(_shown(call, volume), status=201)


def inspect(call: Call) -> Answer:
    return call.json(_shown(call, call.engine.volumes.find(call.argument)))


async def remove(call: Call) -> Answer:
    await call.engine.volumes.remove(call.argument, force=call.flag("force"))
    return call.empty()


async def prune(call: Call) -> Answer:
    filters = Filters.parse(call.text("filters"), PRUNE_FILTERS)
    everything = call.version < PRUNES_ANONYMOUS
    pruned = await call.engine.volumes.prune(filters, everything)
    return call.json(VolumesPruned(volumes_deleted=pruned.names, space_reclaimed=pruned.reclaimed))


def _shown(call: Call, volume: model.Volume) -> Volume:
    return views.volume(volume, call.engine.volumes.mountpoint(volume))


ROUTES = (
    read("/volumes", listing),
    read("/volumes/{name}", inspect),
    change("POST", "/volumes/create", create),
    change("POST", "/volumes/prune", prune),
    change("DELETE", "/volumes/{name}", remove),
)
