"""Images: out of the one engine as an archive, into the other as it comes. What is there is not fetched again."""

from collections.abc import AsyncIterator, Collection
from typing import Any

from husk.cli.migrate.report import MigrationReport
from husk.client.client import Client
from husk.errors import HuskError, NotFound

_NONE = "<none>"


async def bring_images(source: Client, target: Client, used: Collection[str], report: MigrationReport) -> None:
    """All that have a name, and those without that a container in `used` is of."""
    for image in sorted(await source.images.list(), key=lambda each: each.attrs.get("Size") or 0):
        tags = [tag for tag in image.attrs.get("RepoTags") or () if _NONE not in tag]
        name = tags[0] if tags else image.short_id
        what = f"image {name}"
        if not tags and image.id not in used:
            continue
        try:
            if await _is_there(source, target, image.id, tags):
                report.skipped(what, "is here")
                continue
            report.begin(what, int(image.attrs.get("Size") or 0))
            await target.images.load(_counted(source, tags or [image.id], report))
            report.done(what)
        except HuskError as error:
            report.failed(what, error.message)


async def _counted(source: Client, names: list[str], report: MigrationReport) -> AsyncIterator[bytes]:
    async for piece in source.images.save(*names):
        report.advance(len(piece))
        yield piece


async def _is_there(source: Client, target: Client, identity: str, tags: list[str]) -> bool:
    """By its id, or under its name with the same layers: ids are those of manifests where containerd keeps images.

    Names that it lacks are given to one that is there.
    """
    found = await _inspected(target, identity)
    if found is None and tags:
        named = await _inspected(target, tags[0])
        if named is not None and _layers(named) == _layers(await _inspected(source, identity) or {}):
            found = named
    if found is None:
        return False
    for tag in set(tags) - set(found.get("RepoTags") or ()):
        await target.images.tag(str(found["Id"]), tag)
    return True


async def _inspected(engine: Client, name: str) -> dict[str, Any] | None:
    try:
        return (await engine.images.get(name)).attrs
    except NotFound:
        return None


def _layers(image: dict[str, Any]) -> list[str]:
    return list((image.get("RootFS") or {}).get("Layers") or ())
