"""How do images become one file? A tar that is a Docker archive and an OCI layout at once, written as it is read.

    oci-layout, index.json              the OCI layout's own
    manifest.json, repositories         the same for `docker load`, old and new
    blobs/sha256/<hex>                  manifests, configurations and layers, each once, as the store has them

The small documents come first, so that whoever reads the stream knows what the blobs are when they come.
"""

import asyncio
import tarfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from husk.engine.images.content import Content, content_of
from husk.engine.images.make import compose_manifest
from husk.engine.images.model import Image
from husk.engine.images.store import ImageStore
from husk.errors import HuskError, InvalidParameter
from husk.gojson import encode
from husk.registry import reference as references
from husk.registry.manifest import OCI_INDEX
from husk.registry.reference import Reference
from husk.storage.sources import read_pieces

_BLOBS = "blobs/sha256/"
_END = bytes(1024)


@dataclass(slots=True)
class _Wanted:
    """One image and the names under which it is to be saved."""

    image: Image
    names: list[Reference] = field(default_factory=list)


class Saver:
    def __init__(self, store: ImageStore) -> None:
        self._store = store

    async def save(self, names: Sequence[str]) -> AsyncGenerator[bytes, None]:
        """The archive in pieces; what is wrong with `names` is raised before the first one. Use `aclosing`."""
        wanted = self._resolve(names)
        chain = [chain_id for each in wanted for chain_id in each.image.chain_ids]
        held = [digest for each in wanted for digest in (each.image.id, each.image.manifest)]
        try:
            async with aclosing(self._write(wanted, [*chain, *held])) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            # Somebody may have removed an image meanwhile.
            await asyncio.shield(self._store.release(chain, held))
        for each in wanted:
            self._store.events.publish("image", "save", each.image.id, {"name": each.image.id})

    async def _write(self, wanted: Sequence[_Wanted], held: list[str]) -> AsyncGenerator[bytes, None]:
        async with self._store.pins.hold(held):
            contents = [
                (await content_of(each.image, self._store.blobs, self._store.layers), each.names) for each in wanted
            ]
            for name, body in _documents(contents).items():
                yield _header(name, len(body)) + body + _padding(len(body))
            layers = {layer.blob: layer.blob_size for content, _ in contents for layer in content.layers}
            for blob, size in layers.items():
                yield _header(_path(blob), size)
                async with aclosing(read_pieces(self._store.blobs.path(blob))) as pieces:
                    async for piece in pieces:
                        yield piece
                yield _padding(size)
            yield _END

    def _resolve(self, names: Sequence[str]) -> list[_Wanted]:
        if not names:
            raise InvalidParameter("no image was named to be saved")
        found: dict[str, _Wanted] = {}
        for text in names:
            for image, name in self._meant(text):
                wanted = found.setdefault(image.id, _Wanted(image))
                if name is not None and name not in wanted.names:
                    wanted.names.append(name)
        return list(found.values())

    def _meant(self, text: str) -> list[tuple[Image, Reference | None]]:
        """A repository's name alone means all its tags; an id or digest means the image without a name."""
        try:
            reference = references.parse(text)
        except HuskError:
            return [(self._store.index.find(text), None)]
        if reference.digest:
            return [(self._store.index.find(text), None)]
        tags = [reference] if reference.tag else self._store.index.tags_of(reference)
        named = [(image, tag) for tag in tags if (image := self._store.index.by_name(tag))]
        return list(named) or [(self._store.index.find(text), None)]


def _documents(contents: Sequence[tuple[Content, list[Reference]]]) -> dict[str, bytes]:
    """Every small file of the archive by its name."""
    blobs: dict[str, bytes] = {}
    index: list[dict[str, object]] = []
    docker: list[dict[str, object]] = []
    repositories: dict[str, dict[str, str]] = {}
    for content, names in contents:
        manifest, media_type = content.manifest, content.media_type
        if content.own:
            manifest, media_type = compose_manifest(content.image.id, len(content.config), content.layers, oci=True)
        digest = references.digest_of(manifest)
        blobs[_path(digest)] = manifest
        blobs[_path(content.image.id)] = content.config
        described = {"mediaType": media_type, "digest": digest, "size": len(manifest), "platform": _platform(content)}
        index += [described | {"annotations": _annotations(name)} for name in names] or [described]
        docker.append(
            {
                "Config": _path(content.image.id),
                "RepoTags": [name.familiar for name in names] or None,
                "Layers": [_path(layer.blob) for layer in content.layers],
            }
        )
        for name in names:
            if content.layers:
                top = content.layers[-1].blob.removeprefix("sha256:")
                repositories.setdefault(name.familiar_name, {})[name.tag] = top
    documents = {
        "oci-layout": encode({"imageLayoutVersion": "1.0.0"}),
        "index.json": encode({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": index}),
        "manifest.json": encode(docker),
    }
    if repositories:
        documents["repositories"] = encode(repositories)
    return documents | blobs


def _platform(content: Content) -> dict[str, str]:
    image = content.image
    platform = {"architecture": image.architecture, "os": image.os, "variant": image.variant}
    return {key: value for key, value in platform.items() if value}


def _annotations(name: Reference) -> dict[str, str]:
    return {"io.containerd.image.name": str(name), "org.opencontainers.image.ref.name": name.tag}


def _path(digest: str) -> str:
    return _BLOBS + digest.removeprefix("sha256:")


def _header(name: str, size: int) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    return entry.tobuf(tarfile.GNU_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
