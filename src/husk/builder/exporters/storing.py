"""A bundle becomes an image of our store, or an index of several: records and names in one transaction."""

from collections.abc import Sequence

from msgspec import structs

from husk.builder.exporters.bundle import BundledImage, ImageBundle
from husk.engine.images.index import ImageIndex, index_record
from husk.engine.images.make import image_over
from husk.engine.images.store import ImageStore
from husk.engine.model.clock import now_ns, rfc3339
from husk.engine.model.image import Image
from husk.registry.manifest import Index, parse_manifest
from husk.registry.reference import Reference


async def store_bundle(store: ImageStore, bundle: ImageBundle, names: Sequence[Reference]) -> None:
    """Add the images and the index of a bundle to the store; the caller holds what the bundle consists of."""
    images = [await _image(store, one, bool(names)) for one in bundle.images]
    former = [known for image in images if (known := store.catalog.get(image.id)) is not None]
    index = _index(bundle, images)
    await store.catalog.add_all(images, names, index)
    for image in former:
        # The same image may have had another manifest, over layers in another form.
        await store.release([], image.content)
    shown = (store.catalog.default_of(index) if index is not None else None) or images[0]
    store.tell("create", shown)
    for name in names:
        store.tell("tag", shown, name.familiar)


async def name_stored(store: ImageStore, bundle: ImageBundle, names: Sequence[Reference]) -> None:
    """Give further names to a bundle that is in the store, if it still is."""
    ids = [image.config.descriptor.digest for image in bundle.images]
    images = [image for id in ids if (image := store.catalog.get(id)) is not None]
    index = store.catalog.index(bundle.root.descriptor.digest) if bundle.index else None
    if names and len(images) == len(ids) and (index is not None or bundle.index is None):
        await store.catalog.add_all(images, names, index)


async def _image(store: ImageStore, bundled: BundledImage, named: bool) -> Image:
    manifest = bundled.manifest.body, bundled.manifest.media_type
    image = await image_over(store.blobs, bundled.config.body, bundled.document, bundled.layers, manifest=manifest)
    return structs.replace(image, packed=bundled.packed, last_tagged=rfc3339(now_ns()) if named else "")


def _index(bundle: ImageBundle, images: Sequence[Image]) -> ImageIndex | None:
    if bundle.index is None:
        return None
    document = parse_manifest(bundle.index.body, bundle.index.media_type)
    assert isinstance(document, Index)
    record = index_record(bundle.index.descriptor, document)
    brought: dict[str, dict[str, object]] = {}
    for bundled, image in zip(bundle.images, images, strict=True):
        brought[bundled.descriptor.digest] = {"image": image.id, "blobs": bundled.packed}
        if bundled.attested:
            attached = [blob.descriptor.digest for blob in bundled.attested.blobs]
            brought[bundled.attested.descriptor.digest] = {"blobs": attached}
    entries = [structs.replace(entry, **brought.get(entry.digest, {})) for entry in record.manifests]
    return structs.replace(record, manifests=entries)
