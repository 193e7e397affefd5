"""The exporter `image` (and `moby`, as clients of a docker daemon call it): a result becomes an image of our store."""

from collections.abc import Mapping, Sequence

from husk.engine.builder.export import ImageExporter
from husk.engine.builder.frontend import Asker, Shown
from husk.engine.builder.jobs import CONFIG, Job, Result
from husk.engine.builder.progress import Status
from husk.engine.builder.refs import Ref
from husk.engine.images.make import read_config
from husk.engine.images.tag import parse_target
from husk.engine.model.image import ImageConfig, RootFS
from husk.errors import InvalidParameter, NotImplementedYet
from husk.registry.manifest import host_platform
from husk.registry.reference import Reference

_TRUE = ("true", "1")


class ImageExport:
    def __init__(self, exporter: ImageExporter, pushes: bool) -> None:
        """Clients of a docker daemon push themselves, whatever they tell the exporter `moby`; those of `image` do not:
        they count on an exporter that `pushes`."""
        self._exporter = exporter
        self._pushes = pushes

    async def export(self, job: Job, result: Result, attributes: Mapping[str, str], number: int) -> dict[str, str]:
        """What a client is told of the image."""
        if self._pushes and attributes.get("push") in _TRUE:
            raise NotImplementedYet("the push of a build's result is not implemented by Husk yet: push the image")
        names = names_of(attributes)
        ref, config = _only(result)
        with Shown(Asker(job.log, job.session), "exporting to image") as shown:
            stack = await ref.stack() if ref else ""
            document = read_config(config) if config else _empty()
            shown.status(Status(id="exporting layers"))
            image = await self._exporter.export(stack, document, names)
            done = ["exporting layers", f"writing image {image.id}", *(f"naming to {name}" for name in names)]
            for step in done:
                shown.status(Status(id=step, done=True))
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
