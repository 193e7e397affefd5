"""What is in a container's file system? Copy files in and out, see what changed, take it all."""

import base64
import contextlib

from aiohttp import web

from husk.api.call import Call
from husk.api.router import change, read, stream
from husk.api.streams import all_sent, body_of, closing, held_body, outlet_of
from husk.api.types.container_files import Change, PathStat
from husk.api.uploads import HeldBody
from husk.api.views.container_files import path_stat
from husk.engine.containers.copy import Archive, SmallArchive
from husk.gojson import encode
from husk.storage.small import LARGEST_ARCHIVE

TAR = "application/x-tar"
_CHUNK = 1 << 18
_STAT_HEADER = "X-Docker-Container-Path-Stat"


async def status(call: Call) -> web.StreamResponse:
    found = await call.engine.copier.status(call.argument, call.file_name("path"))
    return web.Response(headers={**call.headers, **_stat_header(path_stat(found))})


async def get_archive(call: Call) -> web.StreamResponse:
    with outlet_of(call.request) as outlet:
        async with call.engine.copier.read(call.argument, call.file_name("path"), outlet) as archive:
            assert archive.status is not None
            if isinstance(archive, SmallArchive):
                headers = {"Content-Type": TAR, **call.headers, **_stat_header(path_stat(archive.status))}
                return web.Response(body=archive.data, headers=headers)
            return await _send(call, archive, outlet, TAR, _stat_header(path_stat(archive.status)))


async def put_archive(call: Call) -> web.StreamResponse:
    held = held_body(call.request)
    if held is not None and await _put_small(call, held):
        return call.empty(200)
    body = body_of(call.request, _CHUNK)
    with contextlib.nullcontext(body) if held is None else held.handed_over() as archive:
        await call.engine.copier.write(
            call.argument,
            call.file_name("path"),
            archive,
            keep_kinds=call.flag("noOverwriteDirNonDir"),
            as_user=call.flag("copyUIDGID"),
        )
    if held is not None:
        held.consumed()
    return call.empty(200)


async def _put_small(call: Call, held: HeldBody) -> bool:
    archive = await held.small(LARGEST_ARCHIVE)
    if archive is None:
        return False
    done = await call.engine.copier.write_small(
        call.argument, call.file_name("path"), archive, as_user=call.flag("copyUIDGID")
    )
    if done:
        held.consumed()
    return done


async def changes(call: Call) -> web.StreamResponse:
    found = await call.engine.differ.changes(call.argument)
    return call.json([Change(path=change.path, kind=change.kind) for change in found] or None)


async def export(call: Call) -> web.StreamResponse:
    with outlet_of(call.request) as outlet:
        async with call.engine.copier.export(call.argument, outlet) as archive:
            return await _send(call, archive, outlet, "application/octet-stream", {})


async def _send(
    call: Call, archive: Archive, outlet: int | None, content_type: str, headers: dict[str, str]
) -> web.StreamResponse:
    response = await call.archive(content_type, headers)
    if outlet is not None:
        await all_sent(call.request)
        await archive.send()
    else:
        async with closing(archive.chunks()) as chunks:
            async for chunk in chunks:
                await response.write(chunk)
    await response.write_eof()
    return response


def _stat_header(status: PathStat) -> dict[str, str]:
    return {_STAT_HEADER: base64.b64encode(encode(status)).decode()}


ROUTES = (
    read("/containers/{id}/archive", status, method="HEAD"),
    stream("GET", "/containers/{id}/archive", get_archive),
    change("PUT", "/containers/{id}/archive", put_archive),
    read("/containers/{id}/changes", changes),
    stream("GET", "/containers/{id}/export", export),
)
