"""`docker import`: a tar becomes the only layer of an image; instructions make its configuration."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing

from msgspec.structs import replace

from husk.compression import compression_of
from husk.engine.images.changes import apply_changes
from husk.engine.images.make import make_image
from husk.engine.images.singleflight import Report
from husk.engine.images.store import ImageStore
from husk.engine.images.tag import parse_target
from husk.engine.model.clock import now_ns, rfc3339
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.image import HistoryEntry, ImageConfig, ImportOptions, Progress, RootFS
from husk.errors import InvalidParameter
from husk.registry.client import RegistryClient
from husk.registry.manifest import DOCKER_LAYER, detected_platform, parse_platform
from husk.storage.layers.chain import chain_id
from husk.storage.layers.ingest import Unpacked
from husk.storage.tar.inflate import inflate, peek
from husk.text.patterns import pattern
from husk.text.urls import split_url

_CONTROL = pattern(r"[\x00-\x1f\x7f]")
_NO_ESCAPE = pattern(r"%(?![0-9A-Fa-f]{2}).{0,2}")
_NOT_IN_HOSTS = pattern(r'[ "<>^`{|}\\]|[^ -~]')


class Importer:
    def __init__(self, store: ImageStore, registry: RegistryClient) -> None:
        self._store = store
        self._registry = registry

    async def import_url(self, url: str, options: ImportOptions, report: Report) -> str:
        """As `import_stream`, from an address of the web."""
        if "://" not in url:
            url = f"http://{url}"
        _check_url(url)
        self._check(options)

        async def chunks() -> AsyncIterator[bytes]:
            received = 0
            async with aclosing(self._registry.download(url)) as download:
                async for chunk, total in download:
                    if not received:  # before that, an address with nothing behind it is answered with a status
                        report(Progress(status=f"Downloading from {url}"))
                    received += len(chunk)
                    report(Progress(status="Importing", current=received, total=total))
                    yield chunk

        return await self.import_stream(chunks(), url, options, report)

    async def import_stream(
        self, chunks: AsyncIterator[bytes], source: str, options: ImportOptions, report: Report
    ) -> str:
        """Make an image of the tar (plain or compressed) in `chunks`; its id."""
        self._check(options)
        name = parse_target(options.repo, options.tag)
        platform = parse_platform(options.platform) if options.platform else detected_platform()
        config = apply_changes(ContainerConfig(), options.changes)
        unpacked = await self._take_in(chunks)
        chain = [chain_id("", unpacked.diff_id)]
        try:
            async with self._store.pins.hold(chain):
                layer = await self._store.layers.commit(unpacked, "")
                created = rfc3339(now_ns())
                comment = options.message or f"Imported from {source}"
                document = ImageConfig(
                    architecture=platform.architecture,
                    os=platform.os,
                    variant=platform.variant,
                    created=created,
                    comment=comment,
                    config=config,
                    rootfs=RootFS(diff_ids=[layer.diff_id]),
                    history=[HistoryEntry(created=created, comment=comment)],
                )
                image = await make_image(self._store.blobs, document, [layer])
                image = replace(image, last_tagged=created if name is not None else "")
                await self._store.catalog.add(image, *([name] if name else []))
        except BaseException:
            await asyncio.shield(self._store.release(chain, []))
            raise
        report(Progress(status=image.id))
        if name is not None:
            self._store.tell("tag", image, name.familiar)
        self._store.tell("import", image)
        return image.id

    def _check(self, options: ImportOptions) -> None:
        """Refuse what is wrong before a byte is read."""
        parse_target(options.repo, options.tag)
        platform = parse_platform(options.platform)
        if platform.os != "linux":
            raise InvalidParameter("operating system is not supported")
        apply_changes(ContainerConfig(), options.changes)

    async def _take_in(self, chunks: AsyncIterator[bytes]) -> Unpacked:
        head = await peek(chunks)

        async def whole() -> AsyncIterator[bytes]:
            if head:
                yield head
            async for chunk in chunks:
                yield chunk

        # gzip is a layer's usual form and stays as it is; the others not every registry and engine would take back.
        packed = compression_of(head) == "gzip"
        pieces = whole() if packed else inflate(whole())
        async with self._store.layers.ingest(None, f"{DOCKER_LAYER}.gzip" if packed else DOCKER_LAYER) as ingest:
            async for piece in pieces:
                await ingest.write(piece)
            return await ingest.finish()


def _check_url(url: str) -> None:
    """Refuse what is no address, in the words of the Go library, which scripts know."""
    quoted = json.dumps(url, ensure_ascii=False)
    if reason := _fault(url):
        raise InvalidParameter(f"parse {quoted}: {reason}")
    parts = split_url(url)
    if parts.scheme not in ("http", "https"):
        raise InvalidParameter(f'Get {quoted}: unsupported protocol scheme "{parts.scheme}"')
    if not parts.hostname:
        raise InvalidParameter(f"Get {quoted}: http: no Host in request URL")


def _fault(url: str) -> str:
    """Describe the fault that keeps a text from being a URL; empty if it is one."""
    if _CONTROL.search(url):  # before urllib reads it, which would leave some of them out
        return "net/url: invalid control character in URL"
    try:
        parts = split_url(url)
        host, _ = parts.hostname or "", parts.port  # which is no number in a bad one
    except ValueError as error:
        return "missing ']' in host" if "[" in url else str(error)
    for part in (parts.netloc, parts.path, parts.fragment):
        if escape := _NO_ESCAPE.search(part):
            return f'invalid URL escape "{escape[0]}"'
    if odd := _NOT_IN_HOSTS.search(host):
        return f"invalid character {json.dumps(odd[0])} in host name"
    return ""
