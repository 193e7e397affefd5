"""Repair of layers whose files a power cut may have taken: their blobs are unpacked again."""

import asyncio
import logging
import os
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path

from husk.errors import HuskError
from husk.kernel.mount import overlaid
from husk.storage.blobs import BlobStore
from husk.storage.layers.soundness import tree_fault
from husk.storage.layers.store import Layer, LayerStore
from husk.storage.sources import read_pieces

log = logging.getLogger(__name__)


async def recover(layers: LayerStore, blobs: BlobStore, *, power_held: bool = False) -> None:
    """At a start: see to all layers whose files were not known to be on the disk when the last daemon ended.

    After a clean end there are none. If the power has held since (`layers/power.py`), the files are in memory at
    least. One whose blob is damaged too stays as it is: no image that anybody was told of has such a layer, for blobs
    are synced before.
    """
    doubtful = from_the_base(layers, (layer for layer in layers.all() if not layer.synced))
    if not doubtful:
        return

    mounted = await asyncio.to_thread(_mounted, layers.path(doubtful[0]).parent)
    for layer in doubtful:
        fault = "its files may not have been on the disk"
        # If a container runs on it the power has not failed, and what is not on the disk is in memory.
        if power_held or layer.directory in mounted:
            fault = await asyncio.to_thread(tree_fault, layers.path(layer), layer.size)
        if not fault:
            layers.sync_later(layer)
            continue
        if layer.directory not in mounted:
            log.warning("layer %s is unpacked again: %s", layer.chain_id, fault)
            fault = await _try(layers, blobs, layer)
        if fault:
            layers.doubt(layer)
            log.error("layer %s is damaged: %s; whatever brings it again mends it", layer.chain_id, fault)


async def unpack_again(layers: LayerStore, blobs: BlobStore, layer: Layer) -> None:
    """Make a layer's files anew from its blob, whose digest is verified; nobody may have it mounted."""

    async with layers.ingest(layer.blob, layer.media_type, limited=False) as ingest:
        async with aclosing(read_pieces(blobs.path(layer.blob))) as pieces:
            async for piece in pieces:
                await ingest.write(piece)
        unpacked = await ingest.finish()
    await layers.renew(layer.chain_id, unpacked)


def from_the_base(layers: LayerStore, wanted: Iterable[Layer]) -> list[Layer]:
    """In an order in which each comes after the one below it, from which it gets the look of its root directory."""

    def depth(layer: Layer) -> int:
        count, below = 0, layers.get(layer.parent)
        while below is not None:
            count, below = count + 1, layers.get(below.parent)
        return count

    return sorted(wanted, key=depth)


async def _try(layers: LayerStore, blobs: BlobStore, layer: Layer) -> str:
    try:
        await unpack_again(layers, blobs, layer)
    except (HuskError, OSError) as error:
        return str(error)
    return ""


def _mounted(directory: Path) -> set[str]:
    """The names in a directory on which overlay mounts stand. Where whole paths were too long those are told from what
    all layers of the mount have in common (`mount_overlay`): this directory, or the data root."""
    bases = (directory, directory.parents[1])
    paths = {Path(os.path.realpath(os.path.join(base, name))) for name in overlaid() for base in bases}
    return {path.name for path in paths if path.parent == directory.resolve()}
