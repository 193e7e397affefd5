"""The engine's builder as the services of BuildKit's protocol know it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from husk.builder.cache.prune import Item
from husk.builder.graph.graph import Definition
from husk.builder.graph.operations import Source
from husk.builder.jobs.jobs import Job
from husk.builder.jobs.kept_builds import KeptBuilds
from husk.builder.protocol.backend import BuildWorker, FileStat
from husk.builder.protocol.definitions import Definitions
from husk.builder.service import Builder, Entry
from husk.builder.solve import BuildRequest
from husk.builder.solver.refs import Ref
from husk.builder.solver.sessions import Sessions
from husk.builder.solver.source_policy import DescribedImage
from husk.engine.model.filters import Filters
from husk.registry.manifest import Platform

if TYPE_CHECKING:
    from husk.builder.frontend.gateway import Bridge
    from husk.builder.solver.source_policy import Resolved, ResolvedFile

SNAPSHOTTER = "org.mobyproject.buildkit.worker.snapshotter"
"""With this label buildx sends exports to archives, pushes and several platforms to a docker daemon."""
HOST_GATEWAY = "org.mobyproject.buildkit.worker.moby.host-gateway-ip"
# Lists of more files are made in a thread.
_AT_ONCE = 200


class EngineBackend:
    def __init__(self, builder: Builder, engine_id: str, host_gateways: Callable[[], Sequence[str]]) -> None:
        """`host_gateways` tells what `--add-host name:host-gateway` means: clients look the address up themselves."""
        self._builder = builder
        self._host_gateways = host_gateways
        self._definitions = Definitions(builder.parsers)
        self._engine_id = engine_id

    @property
    def sessions(self) -> Sessions:
        return self._builder.sessions

    @property
    def kept_builds(self) -> KeptBuilds:
        return self._builder.kept

    async def build(self, request: BuildRequest, /) -> Mapping[str, str]:
        return await self._builder.solve(request)

    async def definition(self, data: bytes, /) -> Definition:
        return await self._definitions.read(data)

    def offer_body(self, chunks: AsyncIterator[bytes], /) -> AbstractContextManager[str]:
        return self._builder.bodies.offer(chunks)

    async def job(self, id: str, /) -> Job:
        return await self._builder.jobs.get(id)

    async def resolve_image(
        self, job: Job, reference: str, platform: Platform | None, mode: str, shown_as: str, /
    ) -> DescribedImage:
        return await self._builder.resolve_image(job, reference, platform, pull=mode == "pull", shown_as=shown_as)

    async def resolve_layout(
        self, job: Job, source: Source, platform: Platform | None, shown_as: str, /
    ) -> DescribedImage:
        return await self._builder.resolve_layout(job, source, platform, shown_as)

    async def resolve_git(self, job: Job, source: Source, shown_as: str, /) -> "Resolved":
        return await self._builder.resolve_git(job, source, shown_as)

    async def resolve_file(self, job: Job, source: Source, shown_as: str, /) -> "ResolvedFile":
        return await self._builder.resolve_file(job, source, shown_as)

    async def read_file(self, ref: Ref, path: str, offset: int, length: int, /) -> bytes:
        return await self._builder.read_file(ref, path, offset, length)

    async def read_directory(self, ref: Ref, path: str, pattern: str, /) -> Sequence[FileStat]:
        entries = await self._builder.entries(ref, path, pattern)
        shown = map(_stat, entries)
        return list(shown) if len(entries) < _AT_ONCE else await asyncio.to_thread(list, shown)

    async def stat(self, ref: Ref, path: str, /) -> FileStat:
        return _stat(await self._builder.stat(ref, path))

    def workers(self) -> Sequence[BuildWorker]:
        gateways = self._host_gateways()
        return [
            BuildWorker(
                id=self._engine_id,
                labels={SNAPSHOTTER: "overlayfs", **({HOST_GATEWAY: gateways[0]} if gateways else {})},
                platforms=self._builder.platforms(),
                rules=self._builder.rules,
            ),
        ]

    def serve_frontends(self, bridge: "Bridge", /) -> None:
        self._builder.understand(bridge, self._definitions.read)

    async def cached(self, filters: Filters, /) -> Sequence[Item]:
        return await self._builder.items(filters)

    async def prune(self, filters: Filters, /, *, all: bool, keep: int) -> Sequence[Item]:
        return (await self._builder.prune(filters, all=all, keep=keep)).items


def _stat(entry: Entry) -> FileStat:
    return FileStat(
        path=entry.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
        mode=entry.mode,
        uid=entry.uid,
        gid=entry.gid,
        size=entry.size,
        modified=entry.mtime_ns,
        link=entry.link.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
        major=entry.major,
        minor=entry.minor,
    )
