"""`docker pull`: the manifest, the configuration, then the missing layers (`fetch`).

The image's record and its names are written last, in one transaction; the layers of a pull that fails or is given up go
again, unless another one relies on them.
"""

import asyncio

from msgspec.structs import replace

from husk.engine.images.fetch import LayerFetcher, WantedLayer
from husk.engine.images.index import ImageIndex, index_record
from husk.engine.images.make import chain_ids, image_record, read_config_aside, require_layers
from husk.engine.images.singleflight import Report
from husk.engine.images.store import ImageStore
from husk.engine.model.image import Image, ImageConfig, Progress
from husk.errors import InvalidParameter, NotFound
from husk.registry import reference as references
from husk.registry.auth import Credentials
from husk.registry.client import FetchedManifest, RegistryClient
from husk.registry.manifest import (
    ImageManifest,
    Index,
    Platform,
    choose_platform,
    detected_platform,
    normalize,
    parse_manifest,
    parse_platform,
)
from husk.registry.reference import Reference


class Puller:
    def __init__(self, store: ImageStore, registry: RegistryClient, fetcher: LayerFetcher) -> None:
        self._store = store
        self._registry = registry
        self._fetcher = fetcher

    async def pull(self, reference: Reference, platform: str, auth: Credentials | None, report: Report) -> None:
        """Pull one image, or all tags of a repository if the reference names neither tag nor digest."""
        if reference.tag or reference.digest:
            changed = await self._pull(reference, platform, auth, report)
        else:
            changed = False
            # One by one: a registry may tell of millions.
            for tag in await self._registry.tags(reference, auth):
                changed |= await self._pull(reference.with_tag(tag), platform, auth, report)
        outcome = "Downloaded newer image for" if changed else "Image is up to date for"
        report(Progress(status=f"Status: {outcome} {reference.familiar}"))

    async def _pull(self, reference: Reference, platform: str, auth: Credentials | None, report: Report) -> bool:
        """Pull one image; whether that changed anything here."""
        if not self._store.catalog.target(reference):
            self._store.layers.expect()
        fetched = await self._registry.manifest(reference, auth)
        report(Progress(status=f"Pulling from {_short_name(reference)}", id=reference.digest or reference.tag))
        resolved, manifest, index_document = await resolve(self._registry, reference, fetched, platform, auth)
        config = await self._registry.blob_bytes(reference, manifest.config, auth)
        document = await read_config_aside(config)
        require_layers(document, len(manifest.layers))
        if document.os not in ("", "linux"):
            raise InvalidParameter(f'image operating system "{document.os}" cannot be used on this platform')
        chain = chain_ids(document.rootfs.diff_ids)
        content = [manifest.config.digest, resolved.descriptor.digest, fetched.descriptor.digest]
        try:
            async with self._store.pins.hold([*chain, *content]):
                if self._store.catalog.get(manifest.config.digest) is None or not await self._fetcher.has(chain):
                    await self._fetch_layers(reference, manifest, document, auth, report)
                index = _record_of(fetched, index_document, resolved, manifest) if index_document is not None else None
                new = await self._record(reference, fetched, resolved, index, config, document)
        except BaseException:
            await asyncio.shield(self._store.release(chain, content))
            raise
        report(Progress(status=f"Digest: {fetched.descriptor.digest}"))
        if platform:
            _warn_of_other_platform(reference, platform, document, report)
        self._store.tell_of_transfer("pull", reference, self._store.catalog.get(manifest.config.digest))
        return new

    async def _fetch_layers(
        self,
        reference: Reference,
        manifest: ImageManifest,
        document: ImageConfig,
        auth: Credentials | None,
        report: Report,
    ) -> None:
        wanted = [WantedLayer(*pair) for pair in zip(manifest.layers, document.rootfs.diff_ids, strict=True)]
        await self._fetcher.fetch(wanted, lambda one, again: self._registry.blob(reference, one, auth, again), report)

    async def _record(
        self,
        reference: Reference,
        fetched: FetchedManifest,
        resolved: FetchedManifest,
        index: ImageIndex | None,
        config: bytes,
        document: ImageConfig,
    ) -> bool:
        """Write the image, its index and their names; whether that changed anything."""
        image_id = await self._store.blobs.put(config)
        await self._store.blobs.put(resolved.body)
        await self._store.blobs.put(fetched.body)
        names = [Reference(reference.domain, reference.path, digest=fetched.descriptor.digest)]
        if reference.tag:
            names.insert(0, Reference(reference.domain, reference.path, tag=reference.tag))
        layers = [self._store.layers.get(chain_id) for chain_id in chain_ids(document.rootfs.diff_ids)]
        if None in layers:
            raise NotFound(f"a layer of {reference.familiar} was removed while it was pulled")
        known, before = self._store.catalog.get(image_id), self._store.catalog.target(names[0])
        image = image_record(
            image_id, document, size=sum(layer.size for layer in layers if layer), manifest=resolved.descriptor
        )
        await self._store.catalog.add(_with_local_facts(image, known), *names, index=index)
        if known is not None:
            await self._store.release([], [known.manifest])  # a registry may have the image under another one
        return known is None or before != self._store.catalog.target(names[0])


async def resolve(
    registry: RegistryClient, reference: Reference, fetched: FetchedManifest, platform: str, auth: Credentials | None
) -> tuple[FetchedManifest, ImageManifest, Index | None]:
    """The manifest for one platform: the fetched one, or the one that the fetched index (returned too) names."""
    parsed = parse_manifest(fetched.body, fetched.descriptor.media_type)
    if isinstance(parsed, ImageManifest):
        return fetched, parsed, None
    wanted = parse_platform(platform) if platform else detected_platform()
    chosen = choose_platform(parsed, wanted)
    inner = await registry.manifest(reference.with_digest(chosen.digest), auth)
    manifest = parse_manifest(inner.body, inner.descriptor.media_type)
    if not isinstance(manifest, ImageManifest):
        raise InvalidParameter("an image index inside an image index is not supported")
    return inner, manifest, parsed


def parse_pull_reference(image: str, tag: str) -> Reference:
    """Parse what to pull: `image` may carry its own tag or digest; `tag` may be a digest. Without: not one image."""
    reference = references.parse(image.removesuffix(":"))
    return reference.with_tag_or_digest(tag) if tag else reference


def _record_of(
    fetched: FetchedManifest, document: Index, resolved: FetchedManifest, manifest: ImageManifest
) -> ImageIndex:
    """The record of an index of which one image is here."""
    index = index_record(fetched.descriptor, document)
    entries = [
        replace(member, image=manifest.config.digest) if member.digest == resolved.descriptor.digest else member
        for member in index.manifests
    ]
    return replace(index, manifests=entries)


def _with_local_facts(image: Image, known: Image | None) -> Image:
    return image if known is None else replace(image, parent=known.parent, last_tagged=known.last_tagged)


def _warn_of_other_platform(reference: Reference, platform: str, document: ImageConfig, report: Report) -> None:
    """An image that exists for one platform only is pulled whatever platform was asked for, as with dockerd."""
    wanted = normalize(parse_platform(platform))
    actual = normalize(Platform(document.architecture, document.os, document.variant))
    if (wanted.os, wanted.architecture) != (actual.os, actual.architecture):
        report(
            Progress(
                status=f"WARNING: image with reference {reference.familiar} was found but its platform ({actual}) "
                f"does not match the specified platform ({wanted})"
            )
        )


def _short_name(reference: Reference) -> str:
    return reference.path
