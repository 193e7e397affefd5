"""The steps that made an image, and the room that removing images would free: plain rows of API documents. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_SHELL = re.compile(r"^/bin/sh -c (#\(nop\)\s*)?")
_NAMELESS = "<none>:<none>"


class ImageStep(NamedTuple):
    """One step of an image's history. `digest` is its layer's, where it has one that can be told."""

    command: str
    size: int
    created: int
    comment: str
    digest: str = ""


class Freed(NamedTuple):
    """The number of images that a removal would take away, and the bytes that it would free."""

    images: int
    size: int


def steps(history: Iterable[Mapping[str, Any]], layers: Iterable[str] = ()) -> list[ImageStep]:
    """The steps of an image from the first to the last; `layers` are the digests of its root file system."""
    found = [
        ImageStep(
            command_of(str(each.get("CreatedBy") or "")),
            int(each.get("Size") or 0),
            int(each.get("Created") or 0),
            str(each.get("Comment") or ""),
        )
        for each in history
    ][::-1]
    digests = list(layers)
    filled = [index for index, step in enumerate(found) if step.size]
    # The history does not say which steps have a layer: it is known only where the numbers agree.
    if len(digests) == len(found):
        filled = list(range(len(found)))
    if len(filled) == len(digests):
        for index, digest in zip(filled, digests, strict=True):
            found[index] = found[index]._replace(digest=digest)
    return found


def command_of(created_by: str) -> str:
    """A step as its Dockerfile has it: without the shell that the builder put before it."""
    told = _SHELL.match(created_by)
    if told is None:
        return created_by.removesuffix(" # buildkit")
    rest = created_by[told.end() :].removesuffix(" # buildkit")
    return rest if told[1] else f"RUN {rest}"


def freed(images: Iterable[Mapping[str, Any]], *, all: bool) -> Freed:
    """Count what a prune would remove of the images in `df`: those without a name, or all that no container has."""
    gone = [each for each in images if not int(each.get("Containers") or 0) and (all or not names(each))]
    return Freed(len(gone), sum(int(each.get("Size") or 0) - max(0, int(each.get("SharedSize") or 0)) for each in gone))


def names(image: Mapping[str, Any]) -> list[str]:
    return [name for name in image.get("RepoTags") or [] if name != _NAMELESS]
