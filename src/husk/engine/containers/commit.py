"""Commit: a container becomes an image. Its writable layer becomes one more layer, its configuration the image's."""

import asyncio
import contextlib

from msgspec.structs import replace

from husk.engine.containers.config.merge import inherit
from husk.engine.containers.drivers import Assembly
from husk.engine.containers.index import ContainerIndex, Instance, Publish
from husk.engine.containers.pause import Pauser
from husk.engine.images.changes import apply_changes
from husk.engine.images.index import platform_of
from husk.engine.images.make import make_image, require_depth
from husk.engine.images.store import ImageStore
from husk.engine.images.tag import parse_target
from husk.engine.model.clock import now_ns, rfc3339
from husk.engine.model.container import Container
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.image import CommitOptions, HistoryEntry, Image, ImageConfig, RootFS
from husk.errors import Conflict, HuskError, NotFound
from husk.registry.manifest import host_platform
from husk.registry.reference import Reference
from husk.storage.layers.chain import chain_id
from husk.storage.layers.ingest import Unpacked
from husk.storage.layers.store import Layer


class Committer:
    def __init__(
        self, store: ImageStore, index: ContainerIndex, assembly: Assembly, pauser: Pauser, publish: Publish
    ) -> None:
        self._store = store
        self._index = index
        self._assembly = assembly
        self._pauser = pauser
        self._publish = publish

    async def commit(self, reference: str, options: CommitOptions) -> str:
        """The new image's id."""
        instance = self._index.find(reference)
        name = parse_target(options.repo, options.tag)
        # The instructions change what the request brings or, without that, what the container was run with.
        wanted = apply_changes(options.config or instance.record.config, options.changes)
        config = inherit(wanted, instance.record.config)
        paused = options.pause and await self._pause(instance)
        try:
            image_id = await self._commit(instance, config, name, options)
        finally:
            if paused:
                with contextlib.suppress(Conflict):  # it has ended
                    await self._pauser.unpause(instance, for_commit=True)
        self._publish(
            instance.record, "commit", comment=options.comment, imageID=image_id, imageRef=name.familiar if name else ""
        )
        return image_id

    async def _pause(self, instance: Instance) -> bool:
        """Keep it from writing meanwhile. One that does not run, or has just ended, writes nothing anyway."""
        if instance.record.state.status != "running":
            return False
        try:
            await self._pauser.pause(instance, for_commit=True)
        except Conflict:
            return False
        return True

    async def _commit(
        self, instance: Instance, config: ContainerConfig, name: Reference | None, options: CommitOptions
    ) -> str:
        """Without the container's lock, for this may take long: it can be stopped, and even removed, meanwhile."""
        record = instance.record
        async with self._store.pins.hold(record.layers):
            layers = [layer for chain in record.layers if (layer := self._store.layers.get(chain))]
            if len(layers) != len(record.layers):
                raise NotFound(f"a layer of the image of container {record.id} is missing")
            require_depth(len(layers) + 1)
            top = record.layers[-1] if record.layers else ""
            changes = await self._changes(instance)
            content: list[str] = []
            added = [chain_id(top, changes.diff_id)] if changes is not None else []
            try:
                async with self._store.pins.hold(added):
                    if changes is not None:
                        layers.append(await self._store.layers.commit(changes, top))
                    image = await self._make(record, config, layers, empty=changes is None, options=options)
                    content = image.content
                    image = replace(image, last_tagged=image.created if name is not None else "")
                    await self._store.catalog.add(image, *([name] if name else []))
            except BaseException:
                await asyncio.shield(self._store.release(added, content))
                raise
        self._store.tell("create", image)
        if name is not None:
            self._store.tell("tag", image, name.familiar)
        return image.id

    async def _changes(self, instance: Instance) -> Unpacked | None:
        """Store the changes to the container's file system as a layer; None if there are none."""
        root = self._assembly.root(instance.id)
        self._require_here(instance)
        try:
            if await asyncio.to_thread(root.unchanged):
                return None
            changes = await self._store.layers.ingest_diff(root.upper)
        except (HuskError, OSError):
            self._require_here(instance)
            raise
        try:
            # Its files go after its record: while that is there, all that was read is whole.
            self._require_here(instance)
        except Conflict:
            await self._store.layers.discard(changes)
            raise
        return changes

    def _require_here(self, instance: Instance) -> None:
        if not self._index.present(instance) or instance.record.state.status == "removing":
            raise Conflict(f"You cannot commit container {instance.id} which is being removed")

    async def _make(
        self, record: Container, config: ContainerConfig, layers: list[Layer], empty: bool, options: CommitOptions
    ) -> Image:
        """The image of these layers, of which the last is new unless the commit is empty."""
        base = self._store.catalog.get(record.image_id)
        platform = platform_of(base) if base else host_platform()
        created = rfc3339(now_ns())
        step = HistoryEntry(
            created=created,
            created_by=" ".join(record.config.cmd or []),
            author=options.author,
            comment=options.comment,
            empty_layer=empty,
        )
        document = ImageConfig(
            architecture=platform.architecture,
            os=platform.os,
            variant=platform.variant,
            created=created,
            author=options.author,
            comment=options.comment,
            config=config,
            rootfs=RootFS(diff_ids=[layer.diff_id for layer in layers]),
            history=[*(base.history if base else []), step],
        )
        return await make_image(self._store.blobs, document, layers, parent=record.image_id if base else "")
