"""Progress that the engine tells while images are on their way or made, as objects. Pure."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from husk.errors import CommandFailed, HuskError, SystemFault

_STEP = re.compile(r"Step ([0-9]{1,9})/([0-9]{1,9}) : ")
_LOADED = re.compile(r"Loaded image(?: ID)?: (\S+)")
_PULLED = "Digest: "
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class PullProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A line of what a pull, push, load or import tells: of one layer (`id`), or of the whole.

    async for line in engine.images.pulling("busybox"):
        print(line.id, line.status, line.current, line.total)
    """

    status: str  #: The words for people
    id: str = ""  #: The id of the layer; empty if the line is about the whole
    current: int = 0  #: Bytes that are there; 0 where they are not told
    total: int = 0  #: All bytes; 0 where they are not told
    digest: str = ""  #: The digest of the manifest, in the line that tells it
    image: str = ""  #: The name or id of an image that is here now


class BuildProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A line of what a build tells.

    async for line in engine.images.building(path=".", tag="mine:1"):
        print(line.text, end="")
    """

    text: str = ""  #: What the builder or a step has written, with the end of its line
    step: int = 0  #: The number of the step that begins with this line
    steps: int = 0  #: The number of all steps
    image: str = ""  #: The id of the image, as soon as it is made
    pull: PullProgress | None = None  #: The progress of a base image on its way


def progress(line: Mapping[str, Any]) -> PullProgress:
    """A line of progress; the failure that it tells of is raised."""
    _raise_failure(line)
    detail = line.get("progressDetail") or {}
    aux = line.get("aux") or {}
    status = str(line.get("status", "") or line.get("stream", "")).rstrip("\n")
    loaded = _LOADED.match(status)
    imported = _DIGEST.fullmatch(status)
    return PullProgress(
        status=status,
        id=str(line.get("id", "")),
        current=int(detail.get("current") or 0),
        total=int(detail.get("total") or 0),
        digest=status.removeprefix(_PULLED) if status.startswith(_PULLED) else str(aux.get("Digest", "")),
        image=loaded[1] if loaded else imported[0] if imported else "",
    )


def build_progress(line: Mapping[str, Any]) -> BuildProgress:
    """A line of a build; the failure that it tells of is raised."""
    _raise_failure(line)
    if "status" in line:
        return BuildProgress(pull=progress(line))
    text = str(line.get("stream", ""))
    step = _STEP.match(text)
    quiet = _DIGEST.fullmatch(text.strip())
    return BuildProgress(
        text=text,
        step=int(step[1]) if step else 0,
        steps=int(step[2]) if step else 0,
        image=str((line.get("aux") or {}).get("ID", "")) or (quiet[0] if quiet else ""),
    )


def _raise_failure(line: Mapping[str, Any]) -> None:
    if error := line.get("error"):
        code = int((line.get("errorDetail") or {}).get("code") or 0)
        failure: HuskError = CommandFailed(str(error), code) if code else SystemFault(str(error))
        raise failure
