"""The file system of a container: copy files in and out, see what changed, take it all."""

import base64
import contextlib

from husk.api.calls.call import Call
from husk.api.calls.router import change, read, stream
from husk.api.http.download import all_sent, lent_socket
from husk.api.http.response import Answer, Response, fields
from husk.api.streams.closing import closing
from husk.api.types.containers import Change, PathStat
from husk.api.views.container_files import path_stat
from husk.engine.containers.copy import Archive, BodyUpload
from husk.text.gojson import encode

TAR = "application/x-tar"
_CHUNK = 1 << 18
_STAT_HEADER = "X-Docker-Container-Path-Stat"


async def status(call: Call) -> Answer:
    found = await call.engine.verbs.copier.status(call.argument, call.file_name("path"))
    return Response(200, b"", fields(_stat_header(path_stat(found))) + call.common.fields)


async def get_archive(call: Call) -> Answer:
    with lent_socket(call.request) as outlet:
        async with call.engine.verbs.copier.read(call.argument, call.file_name("path"), outlet) as archive:
            assert archive.status is not None
            return await _send(call, archive, outlet, TAR, _stat_header(path_stat(archive.status)))


async def put_archive(call: Call) -> Answer:
    body = call.request.body
    # A worker reads a local client's socket itself; what comes over TCP without TLS passes through the daemon.
    handed_over = body is not None and call.request.connection.is_local
    with body.handed_over() if body is not None and handed_over else contextlib.nullcontext() as lent:
        archive = BodyUpload(*lent) if lent is not None else call.upload(_CHUNK)
        await call.engine.verbs.copier.write(
            call.argument,
            call.file_name("path"),
            archive,
            keep_kinds=call.flag("noOverwriteDirNonDir"),
            as_user=call.flag("copyUIDGID"),
        )
    if body is not None and handed_over:
        body.consumed()
    return call.empty(200)


async def changes(call: Call) -> Answer:
    found = await call.engine.verbs.differ.changes(call.argument)
    return call.json([Change(path=change.path, kind=change.kind) for change in found] or None)


async def export(call: Call) -> Answer:
    with lent_socket(call.request) as outlet:
        async with call.engine.verbs.copier.export(call.argument, outlet) as archive:
            return await _send(call, archive, outlet, "application/octet-stream", {})


async def _send(call: Call, archive: Archive, outlet: int | None, content_type: str, headers: dict[str, str]) -> Answer:
    response = call.archive(content_type, headers)
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
