"""`husk cp`: files between a container and here."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import NamedTuple

import click

from husk.cli.containers.archives import packed, unpacked
from husk.cli.kit.command import HuskCommand, as_json, flag
from husk.cli.kit.complete import containers
from husk.cli.kit.engine import ask
from husk.cli.kit.place import HostChoice
from husk.cli.kit.words import size
from husk.cli.kit.writing import at_terminal, complain, document, write
from husk.client.client import Client
from husk.client.container import Container
from husk.errors import InvalidParameter, NotFound

_PIECE = 1 << 18


class Where(NamedTuple):
    """One side of a copy; without a container it is here."""

    container: str
    path: str


@click.command(cls=HuskCommand)
@flag("-a", "--archive", help="Archive mode (copy all uid/gid information).")
@flag("-L", "--follow-link", "follow", help="Always follow symbol link in SRC_PATH.")
@flag("-q", "--quiet", help="Suppress progress output during copy.")
@as_json
@click.argument("source", metavar="SRC", shell_complete=containers)
@click.argument("target", metavar="DEST", shell_complete=containers)
@click.pass_obj
def cp(place: HostChoice, /, source: str, target: str, archive: bool, follow: bool, quiet: bool, as_json: bool) -> None:
    """Copy files between a container and the local filesystem.

    One of both is CONTAINER:PATH. A hyphen is a tar archive on stdin or stdout.
    """
    there, here = where(source), where(target)
    if bool(there.container) == bool(here.container):
        raise click.UsageError("one of both sides has to be CONTAINER:PATH, and the other a path here")

    async def copied(engine: Client) -> None:
        if there.container:
            box = await engine.containers.get(there.container)
            count = await _from(box, there.path, here.path, archive, follow)
        else:
            box = await engine.containers.get(here.container)
            count = await _to(box, there.path, here.path, archive, follow)
        if as_json and here.path != "-":
            document({"Source": source, "Target": target, "Size": count})
        elif not quiet and at_terminal(2) and here.path != "-":
            complain(f"Successfully copied {size(count)} to {target}")

    ask(place, copied)


def where(text: str) -> Where:
    """`web:/path`, or a path here: one that begins with `.` or `/` is none of a container."""
    name, colon, path = text.partition(":")
    if not colon or not name or name.startswith((".", "/")):
        return Where("", text)
    return Where(name, path)


async def _from(box: Container, path: str, target: str, owners: bool, follow: bool) -> int:
    if target == "-":
        count = 0
        async for piece in box.get_archive(path):
            write(1, piece)
            count += len(piece)
        return count
    found = await box.stat(path)
    if follow and found.is_symlink:
        path = found.link_target
        found = await box.stat(path)
    inside = path.endswith("/.") or path in (".", "./")
    place = landing(target, found.is_dir, found.name, inside)
    return await unpacked(box.get_archive(path), place, owners)


def landing(target: str, directory: bool, name: str, inside: bool) -> str:
    """Return the path of a copy here; `inside` means that the contents of the directory are copied, not the directory.

    A link that was named is gone through, here alone: no other link is.
    """
    inside = inside or name in ("/", ".")
    if (name != os.path.basename(name) and not inside) or name in ("", ".."):
        raise InvalidParameter(f"cannot copy {name!r}: it is no name of a file")
    if os.path.isdir(target):
        return os.path.realpath(target) if inside else os.path.join(target, name)
    if os.path.exists(target):
        if directory:
            raise InvalidParameter(f"cannot copy a directory to {target}, which is a file")
        return os.path.realpath(target)
    if target.endswith("/") and not directory:
        raise NotFound(f"there is no directory {target}: make it first")
    parent = os.path.dirname(os.path.abspath(target))
    if not os.path.isdir(parent):
        raise NotFound(f"there is no directory {parent}: make it first")
    return target


async def _to(box: Container, source: str, path: str, owners: bool, follow: bool) -> int:
    if source == "-":
        await box.put_archive(path, _stdin(), copy_uid_gid=owners, no_overwrite_dir_non_dir=True)
        return 0
    directory, inside, name = departure(source, follow)
    into, name = await _arrival(box, path, directory, name, inside)
    pack = packed(source, name, follow)
    count = pack.size
    await box.put_archive(into, pack.pieces(), copy_uid_gid=owners, no_overwrite_dir_non_dir=True)
    return count


def departure(source: str, follow: bool) -> tuple[bool, bool, str]:
    """Tell if the source is a directory, if only its contents are meant, and its name; NotFound if there is none."""
    if not os.path.lexists(source):
        raise NotFound(f"there is no {source} here")
    directory = os.path.isdir(source) and (follow or not os.path.islink(source) or source.endswith("/"))
    inside = directory and (source.endswith("/.") or source == ".")
    return directory, inside, os.path.basename(os.path.abspath(source))


async def _arrival(box: Container, path: str, directory: bool, name: str, inside: bool) -> tuple[str, str]:
    """The directory in the container that is unpacked into, and the name there."""
    try:
        found = await box.stat(path)
        if found.is_symlink:
            found = await box.stat(found.link_target)
    except NotFound:
        if path.endswith("/") and not directory:
            raise
        bare = path.rstrip("/")
        return os.path.dirname(bare) or "/", os.path.basename(bare)
    if found.is_dir:
        return path, "." if inside else name
    if directory:
        raise InvalidParameter(f"cannot copy a directory to {path}, which is a file")
    return os.path.dirname(path) or "/", os.path.basename(path)


async def _stdin() -> AsyncIterator[bytes]:
    while data := await asyncio.to_thread(os.read, 0, _PIECE):
        yield data
