"""Operations on containers: their processes, what they use and may use, and the removal of those that may go."""

from msgspec import structs

from husk.api.calls.call import Call
from husk.api.calls.router import change, read, stream
from husk.api.http.response import Answer
from husk.api.streams.closing import closing
from husk.api.types.containers import PruneResponse, TopResponse, UpdateResponse
from husk.api.versioning import Version
from husk.api.views.container_stats import container_stats
from husk.engine.containers.stats import Mode
from husk.engine.model.container_config import HostConfig
from husk.engine.model.filters import Filters
from husk.errors import InvalidParameter
from husk.text.gojson import Reader, encode

WITH_PIDS_UPDATE = Version(1, 40)
WITH_ONE_SHOT = Version(1, 41)

_limits = Reader(HostConfig)


async def top(call: Call) -> Answer:
    table = await call.engine.verbs.top.top(call.argument, call.text("ps_args"))
    return call.json(TopResponse(processes=table.processes or None, titles=table.titles))


async def stats(call: Call) -> Answer:
    call.engine.containers.find(call.argument)
    streaming = call.flag("stream", default=True)
    one_shot = call.flag("one-shot") and call.version >= WITH_ONE_SHOT
    if streaming and one_shot:
        raise InvalidParameter("cannot have stream=true and one-shot=true")
    mode: Mode = "stream" if streaming else "one-shot" if one_shot else "once"
    async with closing(call.engine.verbs.statistics.samples(call.argument, mode)) as samples:
        if not streaming:
            async for sample in samples:
                return call.json(container_stats(sample))
        response = call.stream("application/json")
        async for sample in samples:
            await response.write(encode(container_stats(sample)) + b"\n")
        await response.write_eof()
    return response


async def update(call: Call) -> Answer:
    request = await call.body(_limits)
    if call.version < WITH_PIDS_UPDATE:
        request = structs.replace(request, pids_limit=None)
    warnings = await call.engine.verbs.updater.update(call.argument, request)
    return call.json(UpdateResponse(warnings=warnings or None))


async def prune(call: Call) -> Answer:
    filters = Filters.parse(call.text("filters"), ("until", "label", "label!"))
    pruned = await call.engine.container_pruner.prune(filters)
    return call.json(PruneResponse(containers_deleted=pruned.ids or None, space_reclaimed=pruned.reclaimed))


ROUTES = (
    read("/containers/{id}/top", top),
    stream("GET", "/containers/{id}/stats", stats),
    change("POST", "/containers/{id}/update", update),
    change("POST", "/containers/prune", prune),
)
