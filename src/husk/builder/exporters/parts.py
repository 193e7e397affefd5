"""The platforms of a build's result: for each a file system, and the configuration of the image that it is. Pure."""

import asyncio
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from husk.builder.jobs.results import CONFIG, PLATFORMS, Predicate, Result
from husk.builder.solver.refs import Ref
from husk.engine.images.make import read_config
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.image import ImageConfig, RootFS
from husk.errors import InvalidParameter
from husk.registry.manifest import Platform, host_platform
from husk.text.documents import MalformedDocument, decode

# Bytes of what is known of a result: more is read in a thread.
_LONG = 32 << 10
_DEFAULT_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class PlatformPart(Struct, frozen=True):
    """`id` is the name that the result has for the platform. Without a ref there are no files."""

    id: str
    platform: Platform
    ref: Ref | None
    document: ImageConfig
    predicates: Sequence[Predicate] = ()

    async def stack(self) -> str:
        return await self.ref.stack() if self.ref else ""


class _Named(Struct, rename="pascal"):
    id: str = msgspec.field(name="ID")
    platform: Platform = Platform()


class _Platforms(Struct, rename="pascal"):
    platforms: list[_Named] = []


async def parts_aside(result: Result) -> list[PlatformPart]:
    """`parts_of`, in a thread where the configurations are long."""
    size = sum(map(len, result.metadata.values()))
    return parts_of(result) if size < _LONG else await asyncio.to_thread(parts_of, result)


def parts_of(result: Result) -> list[PlatformPart]:
    """One for each platform; of a result that tells none, one for what its configuration says."""
    if result.ref and result.refs:
        raise InvalidParameter("a result has either one ref or one for each platform")
    named = _named(result)
    if result.refs and not named:
        raise InvalidParameter("unable to export multiple refs, missing platforms mapping")
    if len(named) > 1 and not result.refs:
        raise InvalidParameter("cannot export multiple platforms without multi-platform enabled")
    if not named:
        document = _document(result.metadata.get(CONFIG, b""), None)
        return [PlatformPart("", _platform_of(document), result.ref, document, result.predicates.get("", ()))]
    return [_part(result, one) for one in named]


def refs_of(result: Result) -> dict[str, Ref]:
    """The refs alone, by the ids of their platforms; empty for one that tells none."""
    if result.refs or result.ref is None:
        return dict(result.refs)
    named = _named(result)
    return {named[0].id if named else "": result.ref}


def is_several(result: Result) -> bool:
    """Return True if an index is wanted, though it may have one platform."""
    return bool(result.refs)


def _named(result: Result) -> list[_Named]:
    text = result.metadata.get(PLATFORMS, b"")
    if not text:
        return []
    try:
        return decode(text, _Platforms).platforms
    except MalformedDocument as error:
        raise InvalidParameter(f"failed to parse platforms passed to exporter: {error}") from None


def _part(result: Result, named: _Named) -> PlatformPart:
    if result.refs and named.id not in result.refs and f"{CONFIG}/{named.id}" not in result.metadata:
        raise InvalidParameter(f"failed to find ref for ID {named.id}")
    ref = result.refs.get(named.id) if result.refs else result.ref
    body = result.metadata.get(f"{CONFIG}/{named.id}") or (b"" if result.refs else result.metadata.get(CONFIG, b""))
    predicates = result.predicates.get(named.id, ())
    return PlatformPart(named.id, named.platform, ref, _document(body, named.platform), predicates)


def _document(body: bytes, platform: Platform | None) -> ImageConfig:
    if body:
        return read_config(body)
    of = platform or host_platform()
    config = ContainerConfig(working_dir="/", env=[_DEFAULT_PATH])
    return ImageConfig(architecture=of.architecture, os=of.os, variant=of.variant, config=config, rootfs=RootFS())


def _platform_of(document: ImageConfig) -> Platform:
    return Platform(document.architecture, document.os, document.variant)
