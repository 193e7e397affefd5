"""Writes the cache of a build to elsewhere: `--cache-to`.

inline      records go into the image's configuration, its layers are the cache's (`inline`)
registry    a manifest of its own in a repository
local       the same in a directory of the client's
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence

import msgspec
from msgspec import Struct

from husk.builder.cache.cache import BuildCache
from husk.builder.exporters.bundle import Bundler, HeldContent
from husk.builder.exporters.layers import Packer
from husk.builder.exporters.options import ExportOptions
from husk.builder.exporters.options import read as read_options
from husk.builder.graph import stacks
from husk.builder.graph.progress import Status
from husk.builder.jobs.jobs import Job
from husk.builder.jobs.results import Result
from husk.builder.remote_cache import config
from husk.builder.remote_cache.config import CacheConfig
from husk.builder.remote_cache.export import Chains, Collector
from husk.builder.remote_cache.imports import CREATED, UNCOMPRESSED
from husk.builder.remote_cache.targets import CacheTarget, Targets
from husk.builder.solver.asking import Asker, ShownWork
from husk.builder.solver.interfaces import CacheSource, PortableExecutor
from husk.builder.solver.refs import Ref
from husk.engine.images.make import layer_type
from husk.engine.images.store import ImageStore
from husk.engine.model.clock import shortest_rfc3339
from husk.errors import HuskError, InvalidParameter, NotImplementedYet
from husk.registry.manifest import DOCKER_LIST, OCI_INDEX, OCI_MANIFEST, Descriptor
from husk.registry.reference import digest_of

INLINE = "inline"
KINDS = (INLINE, "registry", "local")
MANIFEST = "cache.manifest"


class CacheOptions(Struct, frozen=True, kw_only=True):
    """The options of a client for a cache that it wants to have."""

    whole: bool = False  # the layers of all steps (`mode=max`)
    oci: bool = True
    as_image: bool = True  # a manifest like an image's, else an index
    ignore_error: bool = False
    layers: ExportOptions = ExportOptions()


def read(source: CacheSource) -> CacheOptions:
    if source.kind not in KINDS:
        known = ", ".join(KINDS)
        raise NotImplementedYet(f"caches of the kind {source.kind} are not implemented by Husk yet: {known} are")
    attributes = source.attributes
    mode = attributes.get("mode", "min")
    if mode not in ("min", "max"):
        raise InvalidParameter(f"invalid cache export mode: {mode!r}: min and max are known")
    relevant = ("compression", "compression-level", "force-compression", "oci-mediatypes")
    layers = read_options({name: attributes[name] for name in relevant if name in attributes}, {})
    oci = layers.oci is not False
    as_image = _flag(attributes, "image-manifest", default=oci)
    if as_image and not oci:
        raise InvalidParameter("image-manifest=true needs OCI's media types: leave out oci-mediatypes=false")
    return CacheOptions(
        whole=mode == "max" and source.kind != INLINE,
        oci=oci,
        as_image=as_image,
        ignore_error=_flag(attributes, "ignore-error", default=False),
        layers=layers,
    )


class CacheWriter:
    def __init__(
        self,
        store: ImageStore,
        packer: Packer,
        bundler: Bundler,
        targets: Targets,
        executor: PortableExecutor,
        cache: BuildCache,
    ) -> None:
        self._store = store
        self._packer = packer
        self._bundler = bundler
        self._targets = targets
        self._executor = executor
        self._cache = cache

    async def write(self, job: Job, result: Result, source: CacheSource) -> dict[str, str]:
        """Write a cache, and return the facts that the client is told. A result that no layer came of has no cache."""
        options = read(source)
        asker = Asker(job.log, job.session)
        held = HeldContent(self._store)
        try:
            target = await self._targets.open(source.kind, source.attributes, job.session)
            with ShownWork(asker, target.name) as shown:
                return await self._write(result, options, target, held, shown)
        except HuskError:
            if not options.ignore_error:
                raise
            return {}
        finally:
            await asyncio.shield(held.release())

    async def _write(
        self, result: Result, options: CacheOptions, target: CacheTarget, held: HeldContent, shown: ShownWork
    ) -> dict[str, str]:
        shown.status(Status(id="preparing build cache for export"))
        chains = await self._collect(result.all, options, held, shown)
        document = chains.document()
        shown.status(Status(id="preparing build cache for export", done=True))
        if not document.layers:
            shown.status(Status(id="skipping cache export for empty result", done=True))
            return {}
        written = dict.fromkeys(layer.blob for layer in document.layers)
        for digest in written:
            await self._told(shown, f"writing layer {digest}", target.write(chains.descriptors[digest]))
        body = config.write(document)
        about = Descriptor(media_type=config.MEDIA_TYPE, digest=digest_of(body), size=len(body))
        held.add([about.digest])
        await self._store.blobs.put(body)
        await self._told(shown, f"writing config {about.digest}", target.write(about))
        manifest = cache_manifest(about, [chains.descriptors[digest] for digest in written], options)
        named = Descriptor(media_type=media_type_of(options), digest=digest_of(manifest), size=len(manifest))
        held.add([named.digest])
        await self._store.blobs.put(manifest)
        kind = "cache image manifest" if options.as_image else "cache manifest"
        await self._told(shown, f"writing {kind} {named.digest}", target.name_it(named, manifest))
        return {MANIFEST: msgspec.json.encode(named).decode()}

    async def _told(self, shown: ShownWork, what: str, work: Awaitable[None]) -> None:
        shown.status(Status(id=what))
        await work
        shown.status(Status(id=what, done=True))

    async def _collect(self, refs: Sequence[Ref], options: CacheOptions, held: HeldContent, shown: ShownWork) -> Chains:
        chains = Chains()
        collector = Collector(self._executor, self._cache, shown, chains)

        async def describe(stack: str) -> list[Descriptor]:
            return await self._described(stack, options, held)

        for ref in refs:
            await collector.collect(ref, describe, whole=options.whole)
        return chains

    async def _described(self, stack: str, options: CacheOptions, held: HeldContent) -> list[Descriptor]:
        held.add_chain(await self._packer.chain_ids(stack))
        layers = await self._packer.layers(stack)
        found = []
        for layer, element in zip(layers, stacks.elements(stack), strict=True):
            described = await self._bundler.described(layer, options.layers, options.oci, held)
            annotations = {UNCOMPRESSED: layer.diff_id}
            if (made := self._cache.made_at(element)) is not None:
                annotations[CREATED] = shortest_rfc3339(made)
            found.append(
                Descriptor(
                    media_type=layer_type(described.media_type, options.oci),
                    digest=described.digest,
                    size=described.size,
                    annotations=annotations,
                )
            )
        return found

    # --- within an image ---------------------------------------------------------------------------------------------

    async def inline(self, job: Job, result: Result, id: str, layers: Sequence[Descriptor]) -> bytes | None:
        """The records for one platform of a result, whose layers go out like this."""
        ref = result.refs.get(id) or result.ref
        if ref is None:
            return None
        chains = Chains()
        with ShownWork(Asker(job.log, job.session), "preparing layers for inline cache") as shown:

            async def describe(stack: str) -> Sequence[Descriptor]:
                return layers[: len(stacks.elements(stack))]

            await Collector(self._executor, self._cache, shown, chains).collect(ref, describe, whole=False)
        return inline_records(chains.document())


def inline_records(document: CacheConfig) -> bytes | None:
    return msgspec.json.encode(document.records) if document.layers else None


def media_type_of(options: CacheOptions) -> str:
    if options.as_image:
        return OCI_MANIFEST
    return OCI_INDEX if options.oci else DOCKER_LIST


def cache_manifest(about: Descriptor, layers: Sequence[Descriptor], options: CacheOptions) -> bytes:
    """Of an image's form, or an index of blobs: registries take either."""
    head = {"schemaVersion": 2, "mediaType": media_type_of(options)}
    if options.as_image:
        return msgspec.json.encode({**head, "config": about, "layers": list(layers)})
    return msgspec.json.encode({**head, "manifests": [*layers, about]})


def _flag(attributes: Mapping[str, str], name: str, *, default: bool) -> bool:
    value = attributes.get(name)
    if value is None:
        return default
    if value.lower() not in ("true", "false", "1", "0", "t", "f"):
        raise InvalidParameter(f"failed to parse {name}: {value!r} is neither true nor false")
    return value.lower() in ("true", "1", "t")
