"""The daemon itself: what is it, what happens in it."""

import asyncio

from msgspec.structs import replace

from husk.api.calls.call import Call
from husk.api.calls.router import read, stream
from husk.api.http.response import Answer
from husk.api.streams.closing import closing
from husk.api.versioning import Version
from husk.api.views import system as views
from husk.engine.model.filters import Filters
from husk.errors import InvalidParameter
from husk.text.gojson import encode

WITH_JSON_LINES = Version(1, 52)


async def version(call: Call) -> Answer:
    system, experimental = call.engine.system, call.engine.config.experimental
    found = await system.components()
    return call.json(views.version_document(system.info(), found, call.common.minimum, experimental))


async def info(call: Call) -> Answer:
    engine = call.engine
    containers = engine.containers.listing(True, 0, Filters())
    images = len(engine.images.listing(True, Filters()))
    facts = engine.system.info()
    document = views.info_document(
        replace(facts, warnings=(*facts.warnings, *engine.system.warnings(), *await engine.networks.warnings())),
        engine.config,
        containers,
        images,
        engine.events.listeners,
        len(asyncio.all_tasks()),
        engine.swarm.cluster if engine.swarm_state != "inactive" else None,
        engine.swarm.node_role.standing() if engine.swarm_state == "active/worker" else None,
        await engine.system.features() if call.version >= views.WITH_RUNTIME_STATUS else None,
        engine.swarm.trouble if engine.swarm_state == "active/manager" else "",
        disk=await engine.system.disk(),
    )
    return call.json(views.info_for(call.version, document))


async def events(call: Call) -> Answer:
    since, until = call.timestamp("since"), call.timestamp("until")
    if since is not None and until is not None and since > until:
        raise InvalidParameter(
            f"`since` time ({call.text('since')}) cannot be after `until` time ({call.text('until')})"
        )
    happening = call.engine.events.subscribe(since, until, Filters.parse(call.text("filters"), None))
    media_type, separator = _event_format(call)
    response = call.stream(media_type)
    async with closing(happening):
        async for event in happening:
            await response.write(separator + encode(views.event_message(event, call.version)) + b"\n")
    await response.write_eof()
    return response


def _event_format(call: Call) -> tuple[str, bytes]:
    """The content type, and what stands before each record: since 1.52 clients may choose."""
    if call.version >= WITH_JSON_LINES:
        accept = call.request.header("accept")
        if "application/json-seq" in accept:
            return "application/json-seq", b"\x1e"
        for media_type in ("application/jsonl", "application/x-ndjson"):
            if media_type in accept:
                return media_type, b""
    return "application/json", b""


ROUTES = (
    read("/version", version),
    read("/info", info),
    stream("GET", "/events", events),
)
