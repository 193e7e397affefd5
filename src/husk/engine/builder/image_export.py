"""The exporter `image` (and `moby`, as clients of a docker daemon call it): a result becomes an image of our store."""

import secrets
from collections.abc import Coroutine, Mapping, Sequence
from typing import TypeVar

from husk.engine.builder.export import ImageExporter
from husk.engine.builder.graph import Vertex
from husk.engine.builder.jobs import CONFIG, Job, Result
from husk.engine.builder.operations import Operation, Source
from husk.engine.builder.progress import Status
from husk.engine.builder.refs import Ref
from husk.engine.images.make import read_config
from husk.engine.images.tag import parse_target
from husk.engine.model.image import ImageConfig, RootFS
from husk.errors import HuskError, InvalidParameter, NotImplementedYet
from husk.registry.manifest import host_platform
from husk.registry.reference import Reference

KINDS = ("image", "moby")
_TRUE = ("true", "1")

T = TypeVar("T")


class ImageExport:
    def __init__(self, exporter: ImageExporter) -> None:
        self._exporter = exporter

    async def export(self, job: Job, result: Result, attributes: Mapping[str, str]) -> dict[str, str]:
        """What a client is told of the image."""
        if attributes.get("push") in _TRUE:
            raise NotImplementedYet("the push of a build's result is not implemented by Husk yet: push the image")
        names = names_of(attributes)
        ref, config = _only(result)
        with _Shown(job, "exporting to image") as shown:
            stack = await ref.stack() if ref else ""
            document = read_config(config) if config else _empty()
            image = await shown.doing("exporting layers", self._exporter.export(stack, document, names))
            shown.done(f"writing image {image.id}")
            for name in names:
                shown.done(f"naming to {name}")
        told = {"containerimage.config.digest": image.id, "containerimage.digest": image.id}
        if names:
            told["image.name"] = ",".join(str(name) for name in names)
        return told


def names_of(attributes: Mapping[str, str]) -> Sequence[Reference]:
    texts = attributes.get("name", "").split(",")
    names = [name for text in texts if (name := parse_target(text.strip(), ""))]
    return list(dict.fromkeys(names))


def _only(result: Result) -> tuple[Ref | None, bytes]:
    if len(result.refs) > 1:
        raise NotImplementedYet("an image for several platforms is not implemented by Husk yet")
    if result.ref and result.refs:
        raise InvalidParameter("a result has either one ref or one for each platform")
    if not result.refs:
        return result.ref, result.metadata.get(CONFIG, b"")
    ((platform, ref),) = result.refs.items()
    return ref, result.metadata.get(f"{CONFIG}/{platform}", b"")


def _empty() -> ImageConfig:
    platform = host_platform()
    return ImageConfig(architecture=platform.architecture, os=platform.os, rootfs=RootFS())


class _Shown:
    """An export as one vertex of the build's progress."""

    def __init__(self, job: Job, name: str) -> None:
        self._log = job.log
        digest = f"sha256:{secrets.token_hex(32)}"
        self._vertex = Vertex(digest=digest, operation=Operation(Source("export://")), name=name)

    def __enter__(self) -> "_Shown":
        self._log.started(self._vertex)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        if error is None:
            self._log.ended(self._vertex)
        elif isinstance(error, HuskError):
            self._log.ended(self._vertex, error=error.message)
        else:
            self._log.ended(self._vertex, cancelled=True)

    async def doing(self, name: str, work: Coroutine[object, object, T]) -> T:
        self._log.status(self._vertex, Status(id=name))
        made = await work
        self.done(name)
        return made

    def done(self, name: str) -> None:
        self._log.status(self._vertex, Status(id=name, done=True))
