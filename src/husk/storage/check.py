"""Comparison of the disk with the records: the facts about blobs and layers. The engine says what the facts mean.

Nothing here changes the store, and all of it may run beside a daemon, which goes on changing it: then whoever asks
looks a second time and believes only what both times found. Hashing runs in threads; a layer is unpacked again by the
same worker that unpacked it, into a scratch directory.
"""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from husk.errors import HuskError
from husk.kernel.trees import remove_tree, tree_size
from husk.storage.blobs import validate_digest
from husk.storage.compare import first_difference
from husk.storage.layers.chain import chain_id
from husk.storage.layers.soundness import digest_of_file
from husk.storage.layers.store import Layer
from husk.storage.sources import read_pieces
from husk.storage.workers.answers import Failed, Invalid, UnpackedLayer
from husk.storage.workers.handle import Worker, WorkerDied
from husk.storage.workers.jobs import UnpackJob
from husk.storage.workers.nursery import Nursery
from husk.text.documents import MalformedDocument, decode

SCRATCH_PREFIX = ".check-"
_AT_ONCE = max(1, min(4, len(os.sched_getaffinity(0))))

T = TypeVar("T")


class Problem(msgspec.Struct, frozen=True):
    """One line of the report. What is no damage is a leftover, which costs space and nothing else."""

    subject: str
    detail: str
    cure: str
    damage: bool = True
    fixable: bool = False


class BlobFacts(msgspec.Struct):
    """The blobs that are there and whole, with their sizes; those that are damaged, and how; files that are none."""

    whole: dict[str, int] = msgspec.field(default_factory=dict)
    damaged: dict[str, str] = msgspec.field(default_factory=dict)
    strays: list[str] = msgspec.field(default_factory=list)


class LayerFacts(msgspec.Struct):
    """The layers on record; what is wrong with records (by key) and with directories (by chain id)."""

    layers: dict[str, Layer] = msgspec.field(default_factory=dict)
    wrong_records: dict[str, str] = msgspec.field(default_factory=dict)
    unreadable: list[str] = msgspec.field(default_factory=list)
    damaged: dict[str, str] = msgspec.field(default_factory=dict)
    strays: list[str] = msgspec.field(default_factory=list)


async def look_at_blobs(root: Path) -> BlobFacts:
    """Compute the digest of every blob below `root`."""
    facts = BlobFacts()
    content = root / "sha256"

    async def look(name: str) -> None:
        digest, path = f"sha256:{name}", content / name
        try:
            validate_digest(digest)
        except HuskError:
            facts.strays.append(f"sha256/{name}")
            return
        try:
            found = await asyncio.to_thread(digest_of_file, path)
            size = path.stat().st_size
        except FileNotFoundError:
            return  # the daemon has just removed it
        except OSError as error:
            facts.damaged[digest] = f"it cannot be read: {error.strerror}"
            return
        if found == digest:
            facts.whole[digest] = size
        else:
            facts.damaged[digest] = f"its content has the digest {found}"

    await _each(look, _names(content))
    facts.strays += [f"ingest/{name}" for name in _names(root / "ingest")]
    return facts


def read_layer_records(documents: Mapping[str, bytes]) -> LayerFacts:
    """Check that the records of layers make sense by themselves. Chain ids are computed anew, from the base up."""
    facts = LayerFacts()
    for key, body in documents.items():
        try:
            layer = decode(body, Layer, largest=len(body))
        except MalformedDocument as error:
            facts.wrong_records[key] = f"its record cannot be read: {error}"
            facts.unreadable.append(key)
            continue
        if key != layer.chain_id or chain_id(layer.parent, layer.diff_id) != layer.chain_id:
            facts.wrong_records[key] = "its record does not have the chain id that its parent and its diff id give"
            continue
        facts.layers[key] = layer
    while orphans := [key for key, la in facts.layers.items() if la.parent and la.parent not in facts.layers]:
        for key in orphans:
            facts.wrong_records[key] = f"the layer below it, {facts.layers.pop(key).parent}, has no record"
    return facts


async def look_at_layers(
    root: Path,
    blobs: Path,
    facts: LayerFacts,
    whole: Mapping[str, int],
    deep: bool,
    diffs: Collection[str] = (),
) -> None:
    """Compare each layer's directory with its record, or with what its blob (if it is whole) gives when unpacked.

    The bytes in files tell quickly that one is gone or short; only a layer that looks wrong, or whose files are not
    known to be on the disk, is unpacked again, unless it is to go deep. `diffs` are directories of builds' own.
    """
    directories = root / "l"
    present = set(_names(directories))
    owners: dict[str, str] = {}
    for key, layer in facts.layers.items():
        other = owners.setdefault(layer.directory, key)
        # What a build has made may be on top of several chains.
        if facts.layers[other].diff_id != layer.diff_id:
            facts.damaged[key] = f"its directory {layer.directory} is also that of {other}"

    async def look(layer: Layer) -> None:
        if layer.chain_id in facts.damaged:
            return
        path = directories / layer.directory
        if layer.directory not in present or path.is_symlink() or not path.is_dir():
            facts.damaged[layer.chain_id] = f"its directory {path} is missing"
            return
        try:
            size = await asyncio.to_thread(tree_size, path)
            suspect = "" if size == layer.size else f"its files have {size} bytes instead of {layer.size}"
            if (deep or suspect or not layer.synced) and layer.blob in whole:
                # Layers exist whose size is not what we count; their own blob has the last word.
                blob = blobs / "sha256" / layer.blob.removeprefix("sha256:")
                suspect = await difference_from_blob(layer, path, blob, root.parent)
        except OSError as error:
            suspect = f"it cannot be read: {error}"
        if suspect:
            facts.damaged[layer.chain_id] = suspect

    await _each(look, facts.layers.values())
    facts.strays = [f"l/{name}" for name in sorted(present.difference(owners, diffs))]
    facts.strays += [f"trash/{name}" for name in _names(root / "trash")]


async def difference_from_blob(layer: Layer, directory: Path, blob: Path, data_root: Path) -> str:
    """Unpack a layer's blob beside it; what is wrong with its directory, empty when nothing is."""
    async with _scratch(data_root) as scratch:
        fresh = scratch / "tree"
        fresh.mkdir(mode=0o755)
        nursery = Nursery()
        (scratch / "blob").touch(mode=0o600)
        worker = await Worker.start(nursery, UnpackJob(str(fresh), str(scratch / "blob"), layer.blob))
        try:
            with contextlib.suppress(WorkerDied):
                async with contextlib.aclosing(read_pieces(blob)) as pieces:
                    async for piece in pieces:
                        await worker.write(piece)
            outcome = await worker.outcome()
        finally:
            worker.stop()
            nursery.close()
        if not isinstance(outcome, UnpackedLayer):
            why = outcome.message if isinstance(outcome, Invalid | Failed) else "the worker died"
            return f"its blob cannot be unpacked: {why}"
        if outcome.diff_id != layer.diff_id:
            return "its blob does not have the content that its diff id names"
        return await asyncio.to_thread(first_difference, fresh, directory)


def scratch_left(data_root: Path) -> list[str]:
    """Scratch directories whose process is gone."""
    return [
        name
        for name in _names(data_root)
        if name.startswith(SCRATCH_PREFIX) and not os.path.exists(f"/proc/{name.split('-')[1]}")
    ]


@contextlib.asynccontextmanager
async def _scratch(data_root: Path) -> AsyncIterator[Path]:
    """A directory on the store's own file system, which takes what the store takes."""
    path = Path(tempfile.mkdtemp(prefix=f"{SCRATCH_PREFIX}{os.getpid()}-", dir=data_root))
    try:
        yield path
    finally:
        await asyncio.to_thread(remove_tree, path)


async def _each(look: Callable[[T], Awaitable[None]], things: Iterable[T]) -> None:
    """Look at all things, a few at once."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(thing: T) -> None:
        async with slots:
            await look(thing)

    async with asyncio.TaskGroup() as group:
        for thing in things:
            group.create_task(one(thing))


def _names(directory: Path) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except FileNotFoundError:
        return []
