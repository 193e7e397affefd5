"""The exporters `oci` and `docker`: an image goes to the client as an archive, an OCI layout.

    oci-layout, index.json      the layout's own; index.json names the image once for each name that it has
    manifest.json               for `docker load`, if it is a `docker` archive
    blobs/sha256/<hex>          all that they name

With `tar=false` the client has a directory of this form, and gets the blobs that it has not.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

import msgspec
from msgspec import structs

from husk.builder.exporters import options as exporter_options
from husk.builder.exporters.bundle import Bundler, ImageBundle
from husk.builder.exporters.image import teller, told_of, without_inline_only
from husk.builder.exporters.options import ExportOptions
from husk.builder.exporters.parts import is_several
from husk.builder.exporters.tar import counted
from husk.builder.jobs.jobs import Job
from husk.builder.jobs.results import Result
from husk.builder.solver.asking import Asker, ShownWork
from husk.builder.solver.sessions import ContentStore
from husk.engine.images.archive import path_of
from husk.engine.model.clock import now_ns, shortest_rfc3339
from husk.errors import InvalidParameter
from husk.registry.manifest import OCI_INDEX, Descriptor
from husk.registry.reference import Reference
from husk.storage.blobs import BlobStore
from husk.storage.sources import read_pieces
from husk.storage.tar.entry import padding
from husk.storage.tar.header import root_file_header

_END = bytes(1024)
# How the client calls the directory that an export without an archive goes into.
_STORE = "export"
_CREATED = "org.opencontainers.image.created"


class ArchiveExport:
    def __init__(self, bundler: Bundler, blobs: BlobStore, kind: str) -> None:
        """`kind` is `oci` or `docker`."""
        self._bundler = bundler
        self._blobs = blobs
        self._kind = kind

    def check(self, attributes: Mapping[str, str]) -> None:
        exporter_options.read(attributes, {})

    async def export(self, job: Job, result: Result, attributes: Mapping[str, str], number: int) -> dict[str, str]:
        """Send the client an image, as a tar or as a layout, and return the facts that it is told of the image."""
        if job.session is None:
            raise InvalidParameter("could not send an archive without session")
        for_docker = self._kind == "docker"
        if for_docker and is_several(result):
            raise InvalidParameter("docker exporter does not currently support exporting manifest lists")
        options = exporter_options.read(attributes, result.metadata)
        if not is_several(result):
            result = without_inline_only(result)
        with ShownWork(Asker(job.log, job.session), f"exporting to {self._kind} image format") as shown:
            async with self._bundler.bundle(result, options, teller(shown), oci=not for_docker) as bundle:
                told = told_of(bundle, options.names)
                if options.tar:
                    async with aclosing(self._archive(bundle, options)) as pieces:
                        await job.session.send_file(number, counted(pieces, shown), told)
                else:
                    await self._write_layout(bundle, job.session.content(_STORE))
        return told

    async def _write_layout(self, bundle: ImageBundle, content: ContentStore) -> None:
        """The client has a directory with blobs, and writes itself what that begins with."""
        for blob in (*bundle.layers, *(one.descriptor for one in (*bundle.small_blobs, *bundle.manifests))):
            async with aclosing(read_pieces(self._blobs.path(blob.digest))) as pieces:
                await content.write(blob.digest, blob.size, pieces)

    async def _archive(self, bundle: ImageBundle, options: ExportOptions) -> AsyncGenerator[bytes, None]:
        documents = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": layout_index(bundle, options)}
        if self._kind == "docker" and bundle.index is None:
            documents["manifest.json"] = docker_manifest(bundle, options.names)
        documents |= {path_of(one.descriptor.digest): one.body for one in (*bundle.manifests, *bundle.small_blobs)}
        for name, body in documents.items():
            yield root_file_header(name, len(body)) + body + bytes(padding(len(body)))
        for layer in bundle.layers:
            yield root_file_header(path_of(layer.digest), layer.size)
            async with aclosing(read_pieces(self._blobs.path(layer.digest))) as pieces:
                async for piece in pieces:
                    yield piece
            yield bytes(padding(layer.size))
        yield _END


def layout_index(bundle: ImageBundle, options: ExportOptions) -> bytes:
    """Return the JSON index that an OCI layout begins with."""
    created = shortest_rfc3339(now_ns() if options.epoch is None else options.epoch * 10**9)
    annotations = {_CREATED: created} | (bundle.descriptor.annotations or {})
    named: list[Descriptor] = []
    for name in options.names:
        own = {"io.containerd.image.name": str(name), "org.opencontainers.image.ref.name": name.tag}
        named.append(structs.replace(bundle.descriptor, annotations=annotations | own))
    named = named or [structs.replace(bundle.descriptor, annotations=annotations)]
    return msgspec.json.encode({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": named})


def docker_manifest(bundle: ImageBundle, names: Sequence[Reference]) -> bytes:
    (image,) = bundle.images
    listed = {
        "Config": path_of(image.config.descriptor.digest),
        "RepoTags": [name.familiar for name in names] or None,
        "Layers": [path_of(layer.digest) for layer in image.described],
    }
    return msgspec.json.encode([listed])
