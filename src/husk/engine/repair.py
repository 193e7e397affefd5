"""Repair of a damaged store: what `checkup` found is worked through, in an order in which each step can be killed.

Nobody else may use the data root meanwhile (`claims`). Nothing of a container or volume is ever deleted: records that
cannot be read are put aside into `lost/`, with the container's directory.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from husk.engine.checkup import DISPOSABLE, Examination
from husk.engine.images.catalog import NAME, ImageCatalog
from husk.engine.images.check import pulled_names, users_of
from husk.engine.images.held import HeldLayers
from husk.engine.images.make import compose_manifest
from husk.engine.images.store import ImageStore
from husk.engine.migrations import STEPS
from husk.engine.model.clock import now_ns, rfc3339
from husk.engine.model.container import KIND as CONTAINER
from husk.engine.model.container import Container
from husk.engine.model.events import Events
from husk.engine.model.image import Image
from husk.engine.model.volume import Volume
from husk.engine.volumes.service import KIND as VOLUME
from husk.errors import HuskError, NotFound
from husk.runtime.assembly.root import ContainerRoot
from husk.storage.blobs import BlobStore
from husk.storage.layers.recover import from_the_base, unpack_again
from husk.storage.layers.store import KIND as LAYER
from husk.storage.layers.store import Layer, LayerStore
from husk.storage.lost import put_record_aside, remove_leftover
from husk.storage.state.store import Change, StateStore
from husk.storage.workers.nursery import Nursery


async def repair(data_root: Path, found: Examination) -> list[str]:
    """Mend what can be mended; one sentence for each thing that was done, or could not be."""
    state = await asyncio.to_thread(StateStore.open, data_root / "state.db", None, STEPS)
    try:
        told = await _mend_records(data_root, state, found)
        blobs = await asyncio.to_thread(BlobStore.open, data_root / "blobs")
        nursery = Nursery()
        layers = await LayerStore.open(data_root / "layers", state, blobs, nursery)
        try:
            mender = _Mender(state, blobs, layers)
            told += await mender.mend(found)
            await layers.emptied()
        finally:
            await layers.close()
            nursery.close()
            blobs.close()
    finally:
        state.close()
    for name in found.scratch:
        await asyncio.to_thread(remove_leftover, data_root / name)
    return told


async def _mend_records(data_root: Path, state: StateStore, found: Examination) -> list[str]:
    """Drop or put aside what would keep the stores from opening."""
    told, changes = [], []
    for kind, key in found.unreadable:
        if kind in DISPOSABLE:
            changes.append(Change(kind, key, None))
            told.append(f"forgot the {kind} {key}")
            continue
        try:
            await asyncio.to_thread(_put_aside, data_root, kind, key, state.load(kind)[key])
        except OSError as error:
            told.append(f"could not put aside the {kind} {key}: {error}")
            continue
        fresh = msgspec.json.encode(Volume(name=key, created=rfc3339(now_ns()))) if kind == VOLUME else None
        changes.append(Change(kind, key, fresh))
        told.append(f"put the record of {kind} {key} aside into {data_root / 'lost'}")
        if fresh:
            told.append(f"volume {key} is kept with all its files; its labels and options are lost")
    changes += [Change(LAYER, key, None) for key in found.verdict.wrong_layers]
    told += [f"forgot layer {key}" for key in found.verdict.wrong_layers]
    changes += [Change(NAME, name, None) for name in found.verdict.loose_names]
    told += [f"forgot the name {name}" for name in found.verdict.loose_names]
    await state.commit(*changes)
    return told


def _put_aside(data_root: Path, kind: str, key: str, body: bytes) -> None:
    directory = data_root / "containers" / key if kind == CONTAINER else None
    if directory is not None:
        ContainerRoot(directory).unmount()
    put_record_aside(data_root, kind, key, body, directory)


class _Mender:
    """Layers and images, with the stores open."""

    def __init__(self, state: StateStore, blobs: BlobStore, layers: LayerStore) -> None:
        self._state = state
        self._blobs = blobs
        self._layers = layers
        self._catalog = ImageCatalog(state, blobs.settle)
        self._names = {key: body.decode(errors="replace") for key, body in state.load(NAME).items()}
        self._containers = list(state.records(CONTAINER, Container).values())

    async def mend(self, found: Examination) -> list[str]:
        verdict = found.verdict
        told = []
        for layer in self._from_the_base(verdict.unpack):
            told.append(await self._unpack(layer))
        for layer in self._from_the_base(verdict.pack):
            told += await self._pack(layer)
        if verdict.lost_members:
            await self._catalog.delete_all(verdict.lost_members)
            told += [f"forgot {image_id}, the image of one platform" for image_id in verdict.lost_members]
        for digest in verdict.dissolve:
            if (index := self._catalog.index(digest)) is not None:
                await self._catalog.dissolve(index)
                told.append(f"made single images of the image index {digest}")
        for image_id in dict.fromkeys(verdict.recompose):
            if (image := self._catalog.get(image_id)) is not None:
                told.append(await self._recompose(image, verdict.damaged_blobs))
        for image_id, why in verdict.broken_images.items():
            if (image := self._catalog.get(image_id)) is not None:
                told.append(await self._remove(image, why))
        leftovers = [problem for problem in found.problems if not problem.damage and problem.fixable]
        held = HeldLayers(self._state)
        store = ImageStore(self._catalog, self._blobs, self._layers, lambda: self._containers, Events(), held=held)
        await store.collect()
        return told + ([f"removed {len(leftovers)} things that nothing uses"] if leftovers else [])

    def _from_the_base(self, chain: Iterable[str]) -> list[Layer]:
        return from_the_base(self._layers, (layer for key in chain if (layer := self._layers.get(key))))

    async def _unpack(self, layer: Layer) -> str:
        """From the blob, whose digest is verified once more."""
        try:
            await unpack_again(self._layers, self._blobs, layer)
        except (HuskError, OSError) as error:
            return f"could not unpack layer {layer.chain_id} again: {error}"
        return f"unpacked layer {layer.chain_id} again from its blob"

    async def _pack(self, layer: Layer) -> list[str]:
        """From the directory; only the same bytes will do. That works for layers that were made here."""
        try:
            unpacked = await self._layers.ingest_diff(self._layers.path(layer))
            if unpacked.diff_id == layer.diff_id:
                await self._layers.renew(layer.chain_id, unpacked)
                return [f"packed layer {layer.chain_id} again from its files"]
            await self._layers.discard(unpacked)
        except (HuskError, OSError) as error:
            return [f"could not pack layer {layer.chain_id} again: {error}"]
        told = []
        for image in users_of(layer, self._catalog):
            used = any(layer.chain_id in container.used_layers for container in self._containers)
            if self._pulled(image) and not used:
                told.append(await self._remove(image, f"the blob of its layer {layer.chain_id} is damaged"))
            else:
                why = "a container needs it" if used else "no registry is known to have it"
                told.append(
                    f"kept image {image.id}, for {why}: it can run, but not be pushed or saved. To be rid of it: "
                    f"docker rmi {image.id}"
                )
        return told

    async def _recompose(self, image: Image, damaged: list[str]) -> str:
        layers = [layer for key in image.chain_ids if (layer := self._layers.get(key))]
        try:
            if len(layers) != len(image.chain_ids):
                raise NotFound("a layer is missing")
            if image.manifest in damaged or any(blob in damaged or not self._blobs.has(blob) for blob in image.packed):
                await self._blobs.remove(image.manifest)
            if not self._blobs.has(image.manifest):
                body, media_type = compose_manifest(image.id, self._blobs.size(image.id), layers)
                manifest = await self._blobs.put(body)
                facts = {"manifest": manifest, "manifest_media_type": media_type, "manifest_size": len(body)}
                image = replace(image, packed=[], **facts)
        except HuskError as error:
            return f"could not compose the manifest of image {image.id} again: {error.message}"
        await self._catalog.add(image)
        return f"composed the manifest of image {image.id} again"

    def _pulled(self, image: Image) -> list[str]:
        return pulled_names(image, self._names, [index.digest for index in self._catalog.indexes_of(image)])

    async def _remove(self, image: Image, why: str) -> str:
        """Its layers and blobs go with the garbage, unless somebody else needs them."""
        names = sorted(name for name, owner in self._names.items() if owner == image.id)
        pulled = self._pulled(image)
        await self._catalog.delete(image)
        bring = f"docker pull {pulled[0]} brings it back" if pulled else "load, import or commit it again"
        return f"removed the broken image {image.id} ({', '.join(names) or 'without a name'}), for {why}: {bring}"
