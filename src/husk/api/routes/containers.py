"""Containers: make them, list them, look at them, move them through their life."""

import re
from collections.abc import Sequence

from msgspec import UNSET

from husk.api.calls import adapting
from husk.api.calls.call import Call
from husk.api.calls.encoded import ImageNames
from husk.api.calls.router import Handled, change, read, stream
from husk.api.http.response import Answer
from husk.api.types.containers import CreateExtras, CreateResponse, WaitError, WaitResponse
from husk.api.versioning import Version
from husk.api.views import containers as views
from husk.engine.containers.index import Exit
from husk.engine.containers.listing import FILTERS
from husk.engine.model.container import Container
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.filters import NO_FILTERS, Filters
from husk.errors import InvalidParameter
from husk.text.gojson import Document, Reader, encode

WITH_CONDITIONS = Version(1, 30)
WITH_STOP_SIGNAL = Version(1, 42)

_config = Reader(ContainerConfig)
_extras = Reader(CreateExtras)


async def create(call: Call) -> Answer:
    document = await call.document()
    if document is None:
        raise InvalidParameter("invalid JSON: got EOF while reading request body")
    return call.json(await made(call, document), status=201)


async def made(call: Call, document: Document, awaited: bool = False) -> CreateResponse:
    """The container that a document describes, not started; `awaited` one is started next."""
    config, extras = await call.read(document, _config), await call.read(document, _extras)
    if not _config.mentioned(document):
        raise InvalidParameter("config cannot be empty in order to create a container")
    endpoints = extras.networking_config.endpoints_config
    call.request.meant = config, extras.host_config
    cgroup_v2 = call.engine.system.info().cgroup_version == "2"
    adapted = adapting.adapt(config, extras.host_config, endpoints, call.version, cgroup_v2=cgroup_v2)
    call.request.meant = adapted.config, adapted.host
    created = await call.engine.containers.create(
        call.text("name"),
        adapted.config,
        adapted.host,
        adapted.endpoints,
        call.text("platform") if call.version >= adapting.WITH_PLATFORM else "",
        awaited=awaited,
    )
    call.request.meant = created.container
    return CreateResponse(id=created.container.id, warnings=[*created.warnings, *adapted.warnings])


def listing(call: Call) -> Handled:
    if not call.request.head.raw_query:
        return call.encoded(call.common.answers.containers(False, 0, NO_FILTERS, call.version))
    limit = call.integer("limit") or 0
    filters = Filters.parse(call.text("filters"), FILTERS)
    if call.flag("size"):
        return _listing_with_sizes(call, call.engine.containers.listing(call.flag("all"), limit, filters))
    return call.encoded(call.common.answers.containers(call.flag("all"), limit, filters, call.version))


async def _listing_with_sizes(call: Call, found: Sequence[Container]) -> Answer:
    containers = call.engine.containers
    sizes, names, shown_image = await containers.sizes_of(found), containers.names(), ImageNames(call.engine)
    return call.json(
        [
            views.summary(c, names[c.id], shown_image.of(c), size, call.version)
            for c, size in zip(found, sizes, strict=True)
            if c.id in names
        ]
    )


def inspect(call: Call) -> Handled:
    if call.request.head.raw_query and call.flag("size"):
        return _inspect_with_sizes(call, call.engine.containers.find(call.argument))
    return call.encoded(call.common.answers.container(call.argument, call.version))


async def _inspect_with_sizes(call: Call, container: Container) -> Answer:
    sizes = await call.engine.containers.sizes(container)
    execs = call.engine.execs.unfinished(container.id)
    paths = call.engine.containers.host_paths(container)
    return call.json(views.inspect(container, paths, call.version, sizes, execs))


async def start(call: Call) -> Answer:
    if call.request.content_length > 7:
        raise InvalidParameter(
            "starting container with non-empty request body was deprecated since API v1.22 and removed in v1.24"
        )
    await call.engine.containers.start(call.argument)
    return call.empty()


async def stop(call: Call) -> Answer:
    await call.engine.containers.stop(call.argument, call.integer("t"), _stop_signal(call))
    return call.empty()


async def restart(call: Call) -> Answer:
    await call.engine.containers.restart(call.argument, call.integer("t"), _stop_signal(call))
    return call.empty()


def _stop_signal(call: Call) -> str:
    return call.text("signal") if call.version >= WITH_STOP_SIGNAL else ""


async def kill(call: Call) -> Answer:
    await call.engine.containers.kill(call.argument, call.text("signal"))
    return call.empty()


async def pause(call: Call) -> Answer:
    await call.engine.containers.pause(call.argument)
    return call.empty()


async def unpause(call: Call) -> Answer:
    await call.engine.containers.unpause(call.argument)
    return call.empty()


async def rename(call: Call) -> Answer:
    await call.engine.containers.rename(call.argument, call.text("name"))
    return call.empty()


async def remove(call: Call) -> Answer:
    await call.engine.containers.remove(
        call.argument, force=call.flag("force"), volumes=call.flag("v"), link=call.flag("link")
    )
    return call.empty()


async def resize(call: Call) -> Answer:
    await call.engine.containers.resize(call.argument, dimension(call, "h"), dimension(call, "w"))
    return call.empty(200)


def dimension(call: Call, name: str) -> int:
    text = call.text(name)
    what = f'invalid resize {"height" if name == "h" else "width"} "{text}"'
    if re.fullmatch(r"[+-]?\d+", text, re.ASCII) is None:
        raise InvalidParameter(f"{what}: invalid syntax")
    if len(text) > 20 or not 0 <= int(text) <= 0xFFFF:
        raise InvalidParameter(f"{what}: value out of range")
    return int(text)


async def wait(call: Call) -> Answer:
    if call.version < WITH_CONDITIONS:
        return call.json(wait_response(await call.engine.containers.watch(call.argument, "")))
    # The docker command starts the container only after it has our headers: they go out before the waiting begins.
    ended = call.engine.containers.watch(call.argument, call.text("condition"))
    response = call.stream("application/json")
    await response.write(encode(wait_response(await ended)) + b"\n")
    await response.write_eof()
    return response


def wait_response(exit: Exit) -> WaitResponse:
    return WaitResponse(
        status_code=exit.code,
        error=WaitError(message=exit.error) if exit.error else UNSET,
        oom_killed=True if exit.oom_killed else UNSET,
    )


ROUTES = (
    read("/containers/json", listing),
    read("/containers/{id}/json", inspect),
    change("POST", "/containers/create", create),
    change("POST", "/containers/{id}/start", start),
    change("POST", "/containers/{id}/stop", stop),
    change("POST", "/containers/{id}/restart", restart),
    change("POST", "/containers/{id}/kill", kill),
    change("POST", "/containers/{id}/pause", pause),
    change("POST", "/containers/{id}/unpause", unpause),
    change("POST", "/containers/{id}/rename", rename),
    change("POST", "/containers/{id}/resize", resize),
    change("DELETE", "/containers/{id}", remove),
    stream("POST", "/containers/{id}/wait", wait),
)
