"""Images on their way in and out: pull and import, push, save, load; and what registries say when asked."""

import contextlib
from collections.abc import Callable

import msgspec

from husk.api.calls.call import Call, platform_parameter, platform_parameters
from husk.api.calls.router import read, stream
from husk.api.http.response import Answer
from husk.api.streams.closing import closing
from husk.api.streams.feed import stream_progress
from husk.api.types.images import DistributionDescriptor, DistributionInspect
from husk.engine.images.transfers import SEARCH_FILTERS
from husk.engine.model.filters import Filters
from husk.engine.model.image import ImportOptions, Progress
from husk.errors import InvalidParameter
from husk.registry.auth import Credentials, parse_auth_header
from husk.registry.manifest import Platform

AUTH_HEADER = "x-registry-auth"
TAR = "application/x-tar"
_CHUNK = 1 << 20

Report = Callable[[Progress], None]


async def create(call: Call) -> Answer:
    """Pull an image, or import one from the body or an address."""
    if not (name := call.text("fromImage")):
        return await _import(call)

    tag, platform, credentials = call.text("tag"), call.text("platform"), credentials_of(call)

    async def pull(report: Report) -> None:
        await call.engine.images.pull(name, tag, platform, credentials, report)

    return await stream_progress(call, pull, f"pull {name}")


async def _import(call: Call) -> Answer:
    source = call.text("fromSrc")
    if not source:
        raise InvalidParameter("fromImage must name the image to pull")
    options = ImportOptions(
        repo=call.text("repo"),
        tag=call.text("tag"),
        message=call.text("message"),
        changes=call.query.getall("changes"),
        platform=call.text("platform"),
    )

    async def work(report: Report) -> None:
        if source == "-":
            await call.engine.images.import_stream(call.upload(_CHUNK), options, report)
        else:
            await call.engine.images.import_url(source, options, report)

    return await stream_progress(call, work, f"import {source}", to_its_end=True)


async def push(call: Call) -> Answer:
    platform = platform_parameter(call.text("platform"))
    tag, credentials = call.text("tag"), credentials_of(call)

    async def work(report: Report) -> None:
        await call.engine.images.push(call.argument, tag, platform, credentials, report)

    return await stream_progress(call, work, f"push {call.argument}")


async def save_one(call: Call) -> Answer:
    return await _save(call, [call.argument])


async def save(call: Call) -> Answer:
    return await _save(call, call.query.getall("names"))


async def _save(call: Call, names: list[str]) -> Answer:
    platforms = platform_parameters(call, "platform")
    async with closing(call.engine.images.save(names, platforms)) as archive:
        first = await anext(archive)  # an error gets its status here
        response = call.archive(TAR)
        await response.write(first)
        async for piece in archive:
            await response.write(piece)
        await response.write_eof()
        return response


async def load(call: Call) -> Answer:
    platforms, quiet = platform_parameters(call, "platform"), call.flag("quiet")

    async def work(report: Report) -> None:
        await call.engine.images.load(call.upload(_CHUNK), platforms, quiet, report)

    return await stream_progress(call, work, "load", to_its_end=True, errors_in_stream=True)


async def search(call: Call) -> Answer:
    filters = Filters.parse(call.text("filters"), SEARCH_FILTERS)
    limit = call.integer("limit")
    found = await call.engine.images.search(call.text("term"), limit or 0, filters, credentials_of(call))
    return call.json(found)


async def distribution(call: Call) -> Answer:
    found = await call.engine.images.distribution(call.argument, credentials_of(call))
    descriptor = found.descriptor
    return call.json(
        DistributionInspect(
            descriptor=DistributionDescriptor(
                media_type=descriptor.media_type, digest=descriptor.digest, size=descriptor.size
            ),
            platforms=[_filled(platform) for platform in found.platforms],
        )
    )


def _filled(platform: Platform) -> dict[str, object]:
    fields: dict[str, object] = msgspec.to_builtins(platform)
    return {"architecture": platform.architecture, "os": platform.os} | fields


def credentials_of(call: Call) -> Credentials | None:
    with contextlib.suppress(InvalidParameter):  # dockerd goes on without credentials when it cannot read them
        return parse_auth_header(call.request.header(AUTH_HEADER))
    return None


ROUTES = (
    stream("POST", "/images/create", create),
    stream("POST", "/images/{name}/push", push),
    stream("GET", "/images/{name}/get", save_one),
    stream("GET", "/images/get", save),
    stream("POST", "/images/load", load),
    read("/images/search", search),
    read("/distribution/{name}/json", distribution),
)
