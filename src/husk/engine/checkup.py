"""Examination of a whole data root: every blob, layer, record and reference is read without an engine, none changed.

`husk doctor --check-store` calls it without an engine: a store that is damaged may be one that no engine opens.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from husk.engine.images.catalog import IMAGE, INDEX, NAME
from husk.engine.images.check import BY_FIX, ImageFindings, Records, judge
from husk.engine.images.held import KIND as HELD
from husk.engine.images.index import ImageIndex
from husk.engine.images.push import PackedTar
from husk.engine.images.store import PACKED
from husk.engine.migrations import STEPS
from husk.engine.model.container import KIND as CONTAINER
from husk.engine.model.container import Container
from husk.engine.model.image import Image
from husk.engine.model.network import Network
from husk.engine.model.volume import Volume
from husk.engine.networks.live import KIND as NETWORK
from husk.engine.networks.sharing import Place
from husk.engine.volumes.service import KIND as VOLUME
from husk.errors import SystemFault
from husk.runtime.assembly.root import ContainerRoot
from husk.storage.check import (
    Problem,
    look_at_blobs,
    look_at_layers,
    read_layer_records,
    scratch_left,
)
from husk.storage.layers.diff_records import DiffRecord
from husk.storage.layers.directories import DIFF
from husk.storage.layers.store import KIND as LAYER
from husk.storage.lost import names_in
from husk.storage.state.schema import UnreadableRecord, read_documents
from husk.text.documents import MalformedDocument, decode

T = TypeVar("T")

Types = Mapping[str, type[msgspec.Struct]]

# Layers are read by `read_layer_records`. A kind that is neither here nor a wing's is of a later version, and not ours
# to judge.
_TYPES: Types = {
    CONTAINER: Container,
    IMAGE: Image,
    INDEX: ImageIndex,
    NETWORK: Network,
    VOLUME: Volume,
    PACKED: PackedTar,
    DIFF: DiffRecord,
    "overlay": Network,
    "address": Place,
}
DISPOSABLE = (IMAGE, INDEX, PACKED, NAME, DIFF)
"""Kinds whose records `repair` drops when they cannot be read: nothing but an image or a cache is lost with them."""


class Examination(msgspec.Struct):
    problems: list[Problem] = msgspec.field(default_factory=list)
    verdict: ImageFindings = msgspec.field(default_factory=ImageFindings)
    unreadable: list[tuple[str, str]] = msgspec.field(default_factory=list)
    scratch: list[str] = msgspec.field(default_factory=list)
    looked_at: str = ""

    @property
    def sound(self) -> bool:
        return not any(problem.damage for problem in self.problems)


async def examine(data_root: Path, wings: Types, deep: bool = False) -> Examination:
    """Look at everything, once. `wings` are their types of records, by kind.

    SystemFault when there is no store, or its records are beyond reading.
    """
    state = data_root / "state.db"
    if state.name not in names_in(data_root):
        held = [name for name in ("blobs/sha256", "layers/l", "containers", "volumes") if names_in(data_root / name)]
        if held:
            raise SystemFault(
                f"{state} is missing, though {', '.join(held)} are not empty: put it back from a backup before a "
                "daemon starts here, for that one removes whatever has no record"
            )
        raise SystemFault(f"there is no store in {data_root}: say where it is with --data-root")
    refused: dict[tuple[str, str], str] = {}
    try:
        documents = await asyncio.to_thread(read_documents, state, STEPS, refused)
    except SystemFault as fault:
        raise SystemFault(f"{fault.message}. Put it back from a backup; no daemon should start here before") from None
    found = Examination()
    records = _read(documents, refused, found, wings)
    records.held_layers = frozenset(documents.get(HELD, {}))
    layers = read_layer_records(documents.get(LAYER, {}))
    diffs = _read_diffs(documents.get(DIFF, {}))
    blobs = await look_at_blobs(data_root / "blobs")
    await look_at_layers(data_root / "layers", data_root / "blobs", layers, blobs.whole, deep, diffs)

    def busy(container: Container) -> bool:
        return ContainerRoot(data_root / "containers" / container.id).mounted

    found.verdict = judge(records, blobs, layers, busy)
    found.problems += found.verdict.problems
    volumes = documents.get(VOLUME, {})
    _directories(data_root / "containers", "container", (c.id for c in records.containers), documents, found)
    _directories(data_root / "volumes", "volume", volumes, documents, found)
    found.scratch = scratch_left(data_root)
    cure = f"{BY_FIX} removes it"
    found.problems += [
        Problem(f"directory {name}", "a check that was killed left it", cure, damage=False, fixable=True)
        for name in found.scratch
    ]
    size = sum(blobs.whole.values()) / 1e6
    found.looked_at = (
        f"{len(blobs.whole) + len(blobs.damaged)} blobs ({size:.1f} MB), {len(layers.layers)} layers, "
        f"{len(records.images)} images, {len(records.names)} names, {len(records.containers)} containers, "
        f"{len(volumes)} volumes"
    )
    return found


def unreadable_records(data_root: Path, wings: Types) -> list[str]:
    """The records that a daemon puts aside, by kind and key. SystemFault as with `examine`."""
    refused: dict[tuple[str, str], str] = {}
    documents = read_documents(data_root / "state.db", STEPS, refused)
    found = Examination()
    _read(documents, refused, found, wings)
    layers = [("layer", key) for key in read_layer_records(documents.get(LAYER, {})).unreadable]
    return [f"{kind} {key}" for kind, key in (*found.unreadable, *layers)]


async def examine_live(data_root: Path, wings: Types, deep: bool = False) -> Examination:
    """Look beside a daemon that goes on working: what two looks agree on is wrong, the rest was on its way.

    Leftovers are not told: they may be what the daemon is working on.
    """
    first = await examine(data_root, wings, deep)
    if any(problem.damage for problem in first.problems):
        before = {(problem.subject, problem.detail) for problem in first.problems}
        first = await examine(data_root, wings, deep)
        first.problems = [problem for problem in first.problems if (problem.subject, problem.detail) in before]
    first.problems = [problem for problem in first.problems if problem.damage]
    return first


def _read(
    documents: Mapping[str, Mapping[str, bytes]],
    refused: Mapping[tuple[str, str], str],
    found: Examination,
    wings: Types,
) -> Records:
    """Decode all records; those that cannot be are problems."""
    types = {**_TYPES, **wings}
    readable: dict[str, dict[str, msgspec.Struct]] = {kind: {} for kind in types}
    for kind, type in types.items():
        for key, body in documents.get(kind, {}).items():
            try:
                if reason := refused.get((kind, key)):
                    raise UnreadableRecord(reason)
                readable[kind][key] = decode(body, type, largest=len(body))
            except (UnreadableRecord, MalformedDocument) as error:
                _note_unreadable(found, kind, key, error)
    names = {}
    for key, body in documents.get(NAME, {}).items():
        try:
            names[key] = body.decode()
        except UnicodeDecodeError as error:
            _note_unreadable(found, NAME, key, error)
    return Records(
        images=_of(readable[IMAGE], Image),
        names=names,
        containers=list(_of(readable[CONTAINER], Container).values()),
        indexes=_of(readable[INDEX], ImageIndex),
    )


def _read_diffs(documents: Mapping[str, bytes]) -> set[str]:
    """The directories of what builds remember, of those whose records can be read."""
    found = set()
    for body in documents.values():
        with contextlib.suppress(MalformedDocument):
            found.add(decode(body, DiffRecord, largest=len(body)).directory)
    return found


def _note_unreadable(found: Examination, kind: str, key: str, error: Exception) -> None:
    found.unreadable.append((kind, key))
    cure = f"{BY_FIX} forgets it" if kind in DISPOSABLE else f"{BY_FIX} puts it aside, into lost/"
    found.problems.append(Problem(f"{kind} {key}", f"its record cannot be read: {error}", cure, fixable=True))


def _of(records: Mapping[str, msgspec.Struct], type: type[T]) -> dict[str, T]:
    return {key: record for key, record in records.items() if isinstance(record, type)}


def _directories(
    root: Path, kind: str, known: Iterable[str], documents: Mapping[str, Mapping[str, bytes]], found: Examination
) -> None:
    """Note each container and volume without its directory, and each directory without its record."""
    expected, present = set(known), set(names_in(root)) - {".trash"}
    for name in sorted(expected - present):
        cure = f"docker {'volume rm' if kind == 'volume' else 'rm'} {name}: its content is lost"
        found.problems.append(Problem(f"{kind} {name}", "its directory is missing", cure))
    for name in sorted(present - expected - documents.get(kind, {}).keys()):
        cure = "the next start of the daemon removes it: move it away before, if you need it"
        found.problems.append(Problem(f"directory {root.name}/{name}", f"there is no such {kind}", cure, damage=False))
