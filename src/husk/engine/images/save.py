"""`docker save`: a tar that is a Docker archive and an OCI layout at once, written as it is read.

    oci-layout, index.json              the OCI layout's own
    manifest.json, repositories         the same for `docker load`, old and new
    blobs/sha256/<hex>                  indexes, manifests, configurations and layers, each once, as the store has them

The small documents come first, so that whoever reads the stream knows what the blobs are when they come. An image for
several platforms is there with all that are here; Docker's own part can tell of one alone, and tells of this host's.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec

from husk.engine.images.archive import path_of
from husk.engine.images.catalog import FoundImage
from husk.engine.images.content import ImageContent, IndexContent, content_of, held_by, index_content, member_content
from husk.engine.images.index import ImageIndex, choose_image
from husk.engine.images.make import compose_manifest
from husk.engine.images.store import ImageStore
from husk.engine.model.image import Image
from husk.errors import HuskError, InvalidParameter, NotFound
from husk.registry import reference as references
from husk.registry.manifest import OCI_INDEX, Platform, normalize
from husk.registry.reference import Reference
from husk.storage.layers.store import Layer
from husk.storage.sources import read_pieces
from husk.storage.tar.entry import padding
from husk.storage.tar.header import root_file_header
from husk.text.gojson import encode

_END = bytes(1024)


class _Wanted(msgspec.Struct):
    """One image or index, the names under which it is to be saved, and for which platforms."""

    image: Image
    index: ImageIndex | None
    names: list[Reference] = msgspec.field(default_factory=list)
    images: list[Image] = msgspec.field(default_factory=list)


class Saver:
    def __init__(self, store: ImageStore) -> None:
        self._store = store

    async def save(self, names: Sequence[str], platforms: Sequence[Platform] = ()) -> AsyncGenerator[bytes, None]:
        """The archive in pieces; what is wrong with the request is raised before the first one. Use `aclosing`."""
        wanted = self._resolve(names)
        chain: list[str] = []
        held: list[str] = []
        for each in wanted:
            each.images = self._choose(each, platforms)
            chain_ids, content = held_by(each.image, each.index, self._store)
            chain, held = chain + chain_ids, held + content
        try:
            async with aclosing(self._write(wanted, len(platforms) != 1, [*chain, *held])) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            # Somebody may have removed an image meanwhile.
            await asyncio.shield(self._store.release(chain, held))
        for each in wanted:
            self._store.tell("save", each.image)

    def _choose(self, wanted: _Wanted, platforms: Sequence[Platform]) -> list[Image]:
        """The images of these platforms; of all that are here, if none is named."""
        here = self._store.catalog.candidates(FoundImage(wanted.image, wanted.index))
        chosen: dict[str, Image] = {}
        for platform in platforms:
            image = choose_image(here, platform)
            if image is None:
                name = wanted.names[0].familiar if wanted.names else wanted.image.id
                raise NotFound(
                    f"no suitable export target found: image with reference {name} was found but does not provide "
                    f"the specified platform ({normalize(platform)})"
                )
            chosen[image.id] = image
        return list(chosen.values()) if platforms else list({image.id: image for _, image in here}.values())

    async def _write(self, wanted: Sequence[_Wanted], with_index: bool, held: list[str]) -> AsyncGenerator[bytes, None]:
        async with self._store.pins.hold(held):
            documents = _Documents()
            for each in wanted:
                await self._describe(each, with_index, documents)
            for name, body in documents.all().items():
                yield root_file_header(name, len(body)) + body + _padding(len(body))
            for blob, size in documents.layers.items():
                yield root_file_header(path_of(blob), size)
                async with aclosing(read_pieces(self._store.blobs.path(blob))) as pieces:
                    async for piece in pieces:
                        yield piece
                yield _padding(size)
            yield _END

    async def _describe(self, wanted: _Wanted, with_index: bool, documents: "_Documents") -> None:
        """Add what describes one image: its index and its manifests, or a manifest alone."""
        index, images = wanted.index, wanted.images
        whole = await index_content(index, self._store) if index is not None and with_index else None
        default = wanted.image if wanted.image in images else images[0]
        if whole is not None:
            documents.add_index(whole, images, default, wanted.names)
            return
        for image in sorted(images, key=lambda each: each is not default):
            member = next((m for m in index.manifests if m.image == image.id), None) if index else None
            exact = await member_content(image, member, self._store) if member else None
            documents.add_image(exact or await content_of(image, self._store), wanted.names if image is default else [])

    def _resolve(self, names: Sequence[str]) -> list[_Wanted]:
        if not names:
            raise InvalidParameter("no image was named to be saved")
        found: dict[str, _Wanted] = {}
        for text in names:
            for (image, index), name in self._meant(text):
                wanted = found.setdefault(index.digest if index else image.id, _Wanted(image, index))
                if name is not None and name not in wanted.names:
                    wanted.names.append(name)
        return list(found.values())

    def _meant(self, text: str) -> list[tuple[FoundImage, Reference | None]]:
        """A repository's name alone means all its tags; an id or digest means the image without a name."""
        catalog = self._store.catalog
        try:
            reference = references.parse(text)
        except HuskError:
            return [(catalog.look_up(text), None)]
        if reference.digest:
            return [(catalog.look_up(text), None)]
        tags = [reference] if reference.tag else catalog.tags_of(reference)
        named = [
            (FoundImage(image, catalog.index_by_name(tag)), tag) for tag in tags if (image := catalog.by_name(tag))
        ]
        return list(named) or [(catalog.look_up(text), None)]


class _Documents:
    """Every small file of the archive, and the layers that are to follow."""

    def __init__(self) -> None:
        self.layers: dict[str, int] = {}
        self._blobs: dict[str, bytes] = {}
        self._index: list[dict[str, object]] = []
        self._docker: list[dict[str, object]] = []
        self._images: list[Image] = []
        self._repositories: dict[str, dict[str, str]] = {}

    def add_image(self, content: ImageContent, names: list[Reference]) -> None:
        manifest, media_type = content.manifest, content.media_type
        if content.own:
            manifest, media_type = compose_manifest(content.image.id, len(content.config), content.layers, oci=True)
        self._add_content(content, manifest)
        self._list(manifest, media_type, names, platform=_platform(content.image))
        self._add_for_docker(content, names)

    def add_index(self, whole: IndexContent, images: list[Image], default: Image, names: list[Reference]) -> None:
        """An index with these images; what else belongs to it goes along if nothing was left out."""
        self._put(whole.document)
        for _, content in whole.images:
            if content.image in images:
                self._add_content(content, content.manifest)
        digests = {member.digest for member, content in whole.images if content.image in images}
        for attached in whole.attached:
            if (
                len(images) == len({content.image.id for _, content in whole.images})
                or attached.member.about in digests
            ):
                self._put(attached.manifest)
                for body in attached.blobs.values():
                    self._put(body)
        self._list(whole.document, whole.index.media_type, names)
        self._add_for_docker(next(content for _, content in whole.images if content.image is default), names)

    def all(self) -> dict[str, bytes]:
        documents = {
            "oci-layout": encode({"imageLayoutVersion": "1.0.0"}),
            "index.json": encode({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": self._index}),
            "manifest.json": encode(self._for_docker()),
        }
        if self._repositories:
            documents["repositories"] = encode(self._repositories)
        return documents | self._blobs

    def _for_docker(self) -> list[dict[str, object]]:
        """Each image with its parent, where that is in the archive too."""
        ids = {image.id for image in self._images}
        return [
            entry | ({"Parent": image.parent} if image.parent in ids - {image.id} else {})
            for entry, image in zip(self._docker, self._images, strict=True)
        ]

    def _put(self, body: bytes) -> None:
        self._blobs[path_of(references.digest_of(body))] = body

    def _add_content(self, content: ImageContent, manifest: bytes) -> None:
        self._put(manifest)
        self._put(content.config)
        self.layers |= {layer.blob: layer.blob_size for layer in content.layers}

    def _list(
        self, body: bytes, media_type: str, names: list[Reference], platform: dict[str, str] | None = None
    ) -> None:
        described: dict[str, object] = {
            "mediaType": media_type, "digest": references.digest_of(body), "size": len(body)
        }  # fmt: skip
        if platform:
            described["platform"] = platform
        self._index += [described | {"annotations": _annotations(name)} for name in names] or [described]

    def _add_for_docker(self, content: ImageContent, names: list[Reference]) -> None:
        layers: list[Layer] = content.layers
        self._docker.append(
            {
                "Config": path_of(content.image.id),
                "RepoTags": [name.familiar for name in names] or None,
                "Layers": [path_of(layer.blob) for layer in layers],
            }
        )
        self._images.append(content.image)
        for name in names:
            if layers:
                top = layers[-1].blob.removeprefix("sha256:")
                self._repositories.setdefault(name.familiar_name, {})[name.tag] = top


def _platform(image: Image) -> dict[str, str]:
    platform = {"architecture": image.architecture, "os": image.os, "variant": image.variant}
    return {key: value for key, value in platform.items() if value}


def _annotations(name: Reference) -> dict[str, str]:
    return {"io.containerd.image.name": str(name), "org.opencontainers.image.ref.name": name.tag}


def _padding(size: int) -> bytes:
    return bytes(padding(size))
