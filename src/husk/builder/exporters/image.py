"""The exporter `image` (and `moby`, as clients of a docker daemon call it): a result becomes an image of our store.

One that is pushed, that has several platforms or statements about it, or whose manifest the client has wishes about, is
stored as it goes out (`bundle`). Any other is plain.

A bundle becomes an image of our store, or an index of several: records and names in one transaction.
"""

import base64
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import structs

from husk.builder.exporters import options as exporter_options
from husk.builder.exporters.bundle import BundledImage, Bundler, ImageBundle, Tell
from husk.builder.exporters.layers import ImageExporter
from husk.builder.exporters.options import ExportOptions
from husk.builder.exporters.parts import is_several, parts_aside
from husk.builder.graph.progress import Status
from husk.builder.jobs.jobs import Job
from husk.builder.jobs.results import Result
from husk.builder.solver.asking import Asker, ShownWork
from husk.builder.sources.registry_login import login_at
from husk.engine.images.index import ImageIndex, index_record
from husk.engine.images.make import image_over
from husk.engine.images.push import PushedContent
from husk.engine.images.service import Images
from husk.engine.images.store import ImageStore
from husk.engine.model.clock import now_ns, rfc3339
from husk.engine.model.image import Image, Progress
from husk.errors import HuskError, InvalidParameter
from husk.registry.manifest import Index, parse_manifest
from husk.registry.reference import Reference


class ImageExport:
    def __init__(
        self, exporter: ImageExporter, bundler: Callable[[], Bundler], store: ImageStore, images: Images
    ) -> None:
        self._exporter = exporter
        self._bundler = bundler
        self._store = store
        self._images = images

    def check(self, attributes: Mapping[str, str]) -> None:
        options = exporter_options.read(attributes, {})
        if options.push and not attributes.get("name"):
            raise InvalidParameter("tag is needed when pushing to registry")

    async def export(self, job: Job, result: Result, attributes: Mapping[str, str], number: int) -> dict[str, str]:
        """Store and push an image as the options say, and return the facts that the client is told of it."""
        options = exporter_options.read(attributes, result.metadata)
        if not options.push:
            result = without_inline_only(result)
        with ShownWork(Asker(job.log, job.session), "exporting to image") as shown:
            if is_plain(result, options):
                return await self._export_plain(result, options, shown)
            async with self._bundler().bundle(result, options, teller(shown)) as bundle:
                if options.store:
                    await self._store_it(bundle, options, shown)
                if options.push:
                    await self._push(bundle, options, shown)
            return told_of(bundle, options.names)

    async def _export_plain(self, result: Result, options: ExportOptions, shown: ShownWork) -> dict[str, str]:
        (part,) = await parts_aside(result)
        shown.status(Status(id="exporting layers"))
        image = await self._exporter.export(
            await part.stack(), part.document, options.names, epoch=options.epoch, clamp=options.clamp
        )
        done = ["exporting layers", f"writing image {image.id}", *(f"naming to {name}" for name in options.names)]
        for step in done:
            shown.status(Status(id=step, done=True))
        told = {"containerimage.config.digest": image.id, "containerimage.digest": image.id}
        return told | _name(options.names)

    async def _store_it(self, bundle: ImageBundle, options: ExportOptions, shown: ShownWork) -> None:
        names = [] if options.by_digest else list(options.names)
        if options.canonical or options.by_digest:
            names += [name.with_digest(bundle.root.descriptor.digest) for name in options.names]
        await store_bundle(self._store, bundle, names)
        for name in names:
            shown.status(Status(id=f"naming to {name}", done=True))

    async def _push(self, bundle: ImageBundle, options: ExportOptions, shown: ShownWork) -> None:
        pushed = _Pushed(shown)
        for name in options.names:
            auth = login_at(name, shown.session)
            try:
                await self._images.upload(
                    upload_of(bundle, name, options.by_digest), auth, pushed.report, insecure=options.insecure
                )
            except HuskError as error:
                error.args = (f"failed to push {name}: {error.message}", *error.args[1:])
                raise
            shown.status(Status(id=f"pushing manifest for {name}@{bundle.root.descriptor.digest}", done=True))
        if options.store:
            digest = bundle.root.descriptor.digest
            await name_stored(self._store, bundle, [name.with_digest(digest) for name in options.names])


def is_plain(result: Result, options: ExportOptions) -> bool:
    wishes = options.push or options.exact or options.canonical or not options.store
    return not (wishes or is_several(result) or result.inline_cache or any(result.predicates.values()))


def without_inline_only(result: Result) -> Result:
    """Of an image that stays here nobody reads what nobody has asked for."""
    kept = {id: [one for one in all if not one.inline_only] for id, all in result.predicates.items()}
    return structs.replace(result, predicates=kept)


def upload_of(bundle: ImageBundle, name: Reference, by_digest: bool) -> PushedContent:
    """All of a bundle, to be sent under a name."""

    layers = [pair for image in bundle.images for pair in zip(image.described, image.layers, strict=True)]
    manifests = [(one.descriptor.digest, one) for one in bundle.manifests]
    manifests[-1] = (bundle.root.descriptor.digest if by_digest else name.tag, bundle.root)
    return PushedContent(
        repository=name,
        layers=list({described.digest: (described, layer) for described, layer in layers}.values()),
        blobs=[one.descriptor for one in bundle.small_blobs],
        manifests=[(reference, one.body, one.media_type) for reference, one in manifests],
    )


def told_of(bundle: ImageBundle, names: Sequence[Reference]) -> dict[str, str]:
    """Return the facts that clients write into `--iidfile` and `--metadata-file`."""
    told = {
        "containerimage.digest": bundle.root.descriptor.digest,
        "containerimage.descriptor": base64.b64encode(msgspec.json.encode(bundle.descriptor)).decode(),
    }
    if bundle.index is None:
        told["containerimage.config.digest"] = bundle.images[0].config.descriptor.digest
    return told | _name(names)


def _name(names: Sequence[Reference]) -> dict[str, str]:
    return {"image.name": ",".join(str(name) for name in names)} if names else {}


def teller(shown: ShownWork) -> Tell:
    return lambda what: shown.status(Status(id=what, done=True))


class _Pushed:
    """The progress of a push in a build's terms."""

    def __init__(self, shown: ShownWork) -> None:
        self._shown = shown

    def report(self, progress: Progress) -> None:
        if progress.id and progress.total:
            done = progress.current >= progress.total
            status = Status(id=f"pushing {progress.id}", current=progress.current, total=progress.total, done=done)
            self._shown.status(status)


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
