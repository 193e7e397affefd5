"""Files of a container: directories to walk through, files to look at, to download and to upload."""

import asyncio
import mimetypes
import posixpath
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast
from urllib.parse import quote

from husk.api.http.errors import BodyTooLarge
from husk.api.http.response import Answer
from husk.client.container import Container
from husk.client.output import STDOUT, Piece
from husk.client.path_stat import PathStat
from husk.dashboard.listing import (
    COMMAND,
    FileEntry,
    OneFile,
    archived,
    clean,
    is_text,
    parents,
    told,
    upload_head,
    upload_tail,
)
from husk.dashboard.pages.container import found, shown
from husk.dashboard.router import change, page, stream
from husk.dashboard.visit import Visit
from husk.errors import Forbidden, HuskError, InvalidParameter

# Bytes of a file that a page shows, of an archive that is read for a list, and of an upload.
_SHOWN = 256 << 10
_READ = 16 << 20
_LARGEST_UPLOAD = 4 << 30
# Seconds that a list may take, and entries that it has.
_PATIENCE = 5.0
_MOST_ENTRIES = 5000
_LONGEST_OUTPUT = 4 << 20
_PIECE = 1 << 18


async def files(visit: Visit) -> Answer:
    """`?path=` is a directory, which is listed, or a file, which is shown."""
    container = await found(visit)
    path = clean(visit.query.get("path") or "/")
    path, about = await _followed(container, path)
    common = {"place": path, "parents": parents(path), "about": about}
    if about.is_dir:
        entries, whole = await _listed(visit, container, path)
        return shown(
            visit,
            container,
            "container_files.html",
            "/files",
            entries=entries[:_MOST_ENTRIES],
            whole=whole and len(entries) <= _MOST_ENTRIES,
            text=None,
            join=posixpath.join,
            **common,
        )
    text = await _text(container, path) if about.is_file and not visit.site.read_only else None
    return shown(
        visit,
        container,
        "container_file.html",
        "/files",
        text=text,
        cut=about.size > _SHOWN,
        **common,
    )


async def _followed(container: Container, path: str) -> tuple[str, PathStat]:
    """Find the file that a path names, or the one that the link there leads to."""
    about = await container.stat(path)
    if about.is_symlink and about.link_target:
        path = clean(posixpath.join(posixpath.dirname(path), about.link_target))
        about = await container.stat(path)
    return path, about


async def _listed(visit: Visit, container: Container, path: str) -> tuple[list[FileEntry], bool]:
    """(the entries, whether they are all). To start a process in a container is to change it."""
    if container.status == "running" and not visit.site.read_only:
        try:
            async with asyncio.timeout(_PATIENCE):
                output, whole = await _output(container, [*COMMAND, path])
            if entries := await asyncio.to_thread(told, output):
                return entries, whole
        except (HuskError, TimeoutError):
            pass  # it has no shell
    beginning, whole = await _beginning(container, path, _READ)
    return await asyncio.to_thread(archived, beginning), whole


async def _output(container: Container, command: list[str]) -> tuple[bytes, bool]:
    """Read a command's output, and tell if that is all of it: the shell is the image's, and may write without end."""
    pieces: list[bytes] = []
    size = 0
    async with aclosing(cast("AsyncGenerator[Piece, None]", aiter(container.exec(command)))) as written:
        async for stream, data in written:
            if stream == STDOUT:
                pieces.append(data)
            size += len(data)
            if size > _LONGEST_OUTPUT:
                return b"".join(pieces), False
    return b"".join(pieces), True


async def _beginning(container: Container, path: str, most: int) -> tuple[bytes, bool]:
    """The first bytes of an archive of a path, and whether that is all of it."""
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_PATIENCE):
            async for piece in container.get_archive(path):
                pieces.append(piece)
                size += len(piece)
                if size >= most:
                    return b"".join(pieces), False
    except TimeoutError:
        return b"".join(pieces), False
    return b"".join(pieces), True


async def _text(container: Container, path: str) -> str | None:
    """The beginning of a file, if it can be shown."""
    archive, _ = await _beginning(container, path, _SHOWN + (1 << 16))
    content = OneFile().feed(archive)[:_SHOWN]
    return content.decode(errors="replace") if is_text(content) else None


async def download(visit: Visit) -> Answer:
    """A file as it is, a directory as a tar archive."""
    if visit.site.read_only:
        raise Forbidden("this dashboard is read-only: it shows which files there are, and not what is in them")
    container = await found(visit)
    path = clean(visit.query.get("path"))
    path, about = await _followed(container, path)
    name = posixpath.basename(path) or container.name
    if not about.is_file:
        answer = visit.streamed("application/x-tar", Content_Disposition=_attachment(f"{name}.tar"))
        async for piece in container.get_archive(path):
            await answer.write(piece)
        return answer
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    answer = visit.streamed(kind, Content_Disposition=_attachment(name))
    file = OneFile()
    async for piece in container.get_archive(path):
        await answer.write(file.feed(piece))
    return answer


def _attachment(name: str) -> str:
    return f"attachment; filename*=UTF-8''{quote(name, safe='', errors='replace')}"


async def upload(visit: Visit) -> Answer:
    """The body is a file; `?path=` the directory that it goes to, `?file=` its name there."""
    container = await found(visit)
    directory = clean(visit.query.get("path"))
    body, size = visit.request.body, visit.request.content_length
    if visit.request.head.chunked:
        raise InvalidParameter("the length of the file must be said")
    if size > _LARGEST_UPLOAD:
        raise BodyTooLarge
    head = upload_head(visit.query.get("file"), size, int(time.time()))

    async def archive() -> AsyncIterator[bytes]:
        yield head
        if body is not None:
            async for piece in body.pieces(_PIECE):
                yield piece
        yield upload_tail(size)

    await container.put_archive(directory, archive())
    place = posixpath.join(directory, visit.query.get("file"))
    back = f"/containers/{container.name}/files?path={quote(directory)}"
    return visit.redirect(back, f"{place} was written.")


ROUTES = (
    page("/containers/{name}/files", files),
    stream("/containers/{name}/files/download", download),
    change("/containers/{name}/files/upload", upload, reads_body=True),
)
