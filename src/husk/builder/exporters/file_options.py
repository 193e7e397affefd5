"""The options of a client for an exporter of files, and the directories for the files of each platform. Pure."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from husk.builder.exporters.options import epoch_of
from husk.builder.exporters.parts import PlatformPart, is_several, parts_aside
from husk.builder.jobs.results import Predicate, Result
from husk.errors import InvalidParameter
from husk.text.patterns import pattern

_DIRECTORY = pattern(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_TRUE = ("1", "t", "T", "true", "TRUE", "True", "")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")


class FileOptions(Struct, frozen=True, kw_only=True):
    split: bool | None = None  # each platform in a directory of its own; None: if there may be several
    prefix: str = ""  # of the names of files with statements
    epoch: int | None = None


def read(attributes: Mapping[str, str], metadata: Mapping[str, bytes]) -> FileOptions:
    split: bool | None = None
    if (text := attributes.get("platform-split")) is not None:
        if text not in _TRUE + _FALSE:
            raise InvalidParameter(f"non-bool value for platform-split: {text}")
        split = text in _TRUE
    prefix = attributes.get("attestation-prefix", "")
    if "/" in prefix or "\0" in prefix:
        raise InvalidParameter(f"invalid attestation-prefix {prefix!r}: it is the beginning of a file's name")
    return FileOptions(split=split, prefix=prefix, epoch=epoch_of(attributes, metadata))


async def directories_of(result: Result, *, split: bool | None = None) -> dict[str, PlatformPart]:
    """Return the platforms by their directories: each has one of its own, if there may be several."""
    parts = await parts_aside(result)
    if not is_several(result) and not split:
        return {"": parts[0]}
    found = {directory(part): part for part in parts}
    for name in found:
        if not _DIRECTORY.fullmatch(name):
            raise InvalidParameter(f"invalid platform {name!r}: no directory can have this name")
    return found


def directory(part: PlatformPart) -> str:
    return (part.id or str(part.platform)).replace("/", "_")


def name_in(options: FileOptions, part: PlatformPart, *, several: bool) -> Callable[[Predicate], str]:
    """Return a namer of the files of statements about a platform: where all lie together its name is in them."""

    def name(predicate: Predicate) -> str:
        called = options.prefix + predicate.path.rpartition("/")[2]
        if options.split is not False or not several:
            return called
        stem, dot, ending = called.rpartition(".")
        return f"{stem}.{directory(part)}.{ending}" if dot else f"{called}.{directory(part)}"

    return name
