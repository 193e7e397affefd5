"""Verdicts on images and containers, by the facts about blobs and layers: what is broken, and what would cure it.

All of it is pure: `judge` takes records and facts and returns a verdict, which `repair` can act on.

    layer, directory damaged, blob whole       unpacked again
    layer, blob damaged, directory whole       packed again, if that gives the same bytes; else its images can still run
    layer, both damaged, or no record          its images are broken
    manifest damaged                           composed again, as for images that were made here
    index damaged, or a document of it         its images go on as single ones
    configuration damaged, or layers broken    the image is broken: nothing but a pull or load brings it back
    name without an image                      dropped
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from husk.engine.images.index import ImageIndex
from husk.engine.images.make import chain_ids
from husk.engine.model.container import Container
from husk.engine.model.image import Image
from husk.errors import HuskError
from husk.registry import reference as references
from husk.storage.check import BlobFacts, LayerFacts, Problem
from husk.storage.layers.store import Layer

BY_FIX = "husk doctor --check-store --fix"


class Records(msgspec.Struct):
    """The records that could be read."""

    images: Mapping[str, Image]
    names: Mapping[str, str]
    containers: Sequence[Container]
    indexes: Mapping[str, ImageIndex] = msgspec.field(default_factory=dict)
    held_layers: frozenset[str] = frozenset()
    """Those that the cache of builds needs."""

    def targets(self, image: Image) -> set[str]:
        """Return the targets of names that stand for this image: itself, and those for several platforms with it."""
        return {image.id, *(index.digest for index in self.indexes.values() if image.id in index.images)}


class ImageFindings(msgspec.Struct):
    """The problems found, and the lists that `repair` works through; leftovers need no list."""

    problems: list[Problem] = msgspec.field(default_factory=list)
    wrong_layers: list[str] = msgspec.field(default_factory=list)
    loose_names: list[str] = msgspec.field(default_factory=list)
    damaged_blobs: list[str] = msgspec.field(default_factory=list)
    unpack: list[str] = msgspec.field(default_factory=list)
    pack: list[str] = msgspec.field(default_factory=list)
    recompose: list[str] = msgspec.field(default_factory=list)
    dissolve: list[str] = msgspec.field(default_factory=list)
    lost_members: list[str] = msgspec.field(default_factory=list)
    broken_images: dict[str, str] = msgspec.field(default_factory=dict)
    broken_layers: set[str] = msgspec.field(default_factory=set)


def judge(records: Records, blobs: BlobFacts, layers: LayerFacts, busy: Callable[[Container], bool]) -> ImageFindings:
    """`busy` tells whether a container's root is mounted at the moment, so that its layers must not be exchanged."""
    verdict = ImageFindings()
    _judge_layers(verdict, records, blobs, layers, busy)
    for image in records.images.values():
        _judge_image(verdict, records, blobs, layers, image)
    for index in records.indexes.values():
        _judge_index(verdict, records, blobs, index)
    _judge_names(verdict, records)
    _judge_containers(verdict, records, layers)
    _find_leftovers(verdict, records, blobs, layers)
    return verdict


def _judge_layers(
    verdict: ImageFindings, records: Records, blobs: BlobFacts, layers: LayerFacts, busy: Callable[[Container], bool]
) -> None:
    for key, why in layers.wrong_records.items():
        verdict.wrong_layers.append(key)
        verdict.problems.append(Problem(f"layer {key}", why, f"{BY_FIX} forgets it", fixable=True))
    for key, layer in layers.layers.items():
        blob_fault = _blob_fault(layer.blob, blobs, layer.blob_size)
        fault = layers.damaged.get(key, "")
        if not fault and not blob_fault:
            continue
        users = [container for container in records.containers if key in container.used_layers]
        running = next((container for container in users if busy(container)), None)
        if fault and running is not None and not blob_fault:
            cure = f"stop container {_container(running)}, then {BY_FIX} unpacks it again"
            verdict.problems.append(Problem(f"layer {key}", fault, cure))
        elif fault and not blob_fault:
            verdict.unpack.append(key)
            cure = f"{BY_FIX} unpacks it again from its blob"
            verdict.problems.append(Problem(f"layer {key}", fault, cure, fixable=True))
        elif blob_fault and not fault:
            verdict.pack.append(key)
            cure = f"{BY_FIX} packs it again if that gives the same bytes, else removes images that can be pulled again"
            verdict.problems.append(Problem(f"layer {key}", f"its blob {blob_fault}", cure, fixable=True))
        else:
            verdict.broken_layers.add(key)
            cure = f"{BY_FIX} removes its images; pull or load them again"
            verdict.problems.append(Problem(f"layer {key}", f"{fault}, and its blob {blob_fault}", cure, fixable=True))
    verdict.damaged_blobs = sorted(blobs.damaged)


def _judge_image(verdict: ImageFindings, records: Records, blobs: BlobFacts, layers: LayerFacts, image: Image) -> None:
    subject = _image(image, records)
    gone = [key for key in image.chain_ids if key not in layers.layers or key in verdict.broken_layers]
    why = ""
    if image.chain_ids != chain_ids(image.diff_ids):
        why = "its chain ids are not those of its diff ids"
    elif gone:
        why = f"its layer {gone[0]} is {'damaged' if gone[0] in layers.layers else 'missing'}"
    elif fault := _blob_fault(image.id, blobs):
        why = f"its configuration {fault}"
    if why:
        verdict.broken_images[image.id] = why
        pulled = pulled_names(image, records.names, records.targets(image))
        bring = f"docker pull {pulled[0]}" if pulled else "a load, import or commit"
        cure = f"{BY_FIX} removes its names and its record; {bring} brings it back"
        verdict.problems.append(Problem(subject, why, cure, fixable=True))
        return
    documents = (image.manifest, *image.packed) if image.manifest else ()
    if fault := next((fault for digest in documents if (fault := _blob_fault(digest, blobs))), ""):
        verdict.recompose.append(image.id)
        cure = f"{BY_FIX} composes a manifest again (its digest may be another one)"
        verdict.problems.append(Problem(subject, f"its manifest {fault}", cure, fixable=True))


def _judge_index(verdict: ImageFindings, records: Records, blobs: BlobFacts, index: ImageIndex) -> None:
    tags = sorted(name for name, target in records.names.items() if target == index.digest and "@" not in name)
    subject = f"image index {index.digest}" + (f" ({', '.join(tags)})" if tags else "")
    for image_id in index.images:
        if image_id not in records.images:
            verdict.lost_members.append(image_id)
            cure = f"{BY_FIX} forgets it; docker pull --platform brings it back"
            verdict.problems.append(Problem(subject, f"there is no image {image_id}", cure, fixable=True))
    if fault := next((fault for digest in index.content if (fault := _blob_fault(digest, blobs))), ""):
        verdict.dissolve.append(index.digest)
        cure = f"{BY_FIX} makes single images of it; docker pull brings it back"
        verdict.problems.append(Problem(subject, f"its document {fault}", cure, fixable=True))


def _judge_names(verdict: ImageFindings, records: Records) -> None:
    for name, owner in records.names.items():
        known = owner in records.images or owner in records.indexes
        why = "" if known else f"there is no image {owner}"
        try:
            references.parse(name)
        except HuskError:
            why = "it is no valid reference"
        if why:
            verdict.loose_names.append(name)
            verdict.problems.append(Problem(f"name {name}", why, f"{BY_FIX} forgets it", fixable=True))


def _judge_containers(verdict: ImageFindings, records: Records, layers: LayerFacts) -> None:
    for container in records.containers:
        gone = [key for key in container.used_layers if key not in layers.layers]
        if gone:
            cure = f"save what you need of it (it is in containers/{container.id[:12]}…/diff), then docker rm it"
            verdict.problems.append(
                Problem(f"container {_container(container)}", f"it cannot start: its layer {gone[0]} is missing", cure)
            )


def _find_leftovers(verdict: ImageFindings, records: Records, blobs: BlobFacts, layers: LayerFacts) -> None:
    """Note the leftovers of a daemon that was killed; its next start removes them, and so do we."""
    used = {key for image in records.images.values() for key in image.chain_ids}
    used |= {key for container in records.containers for key in container.used_layers} | records.held_layers
    named = {digest for image in records.images.values() for digest in image.content}
    named |= {digest for index in records.indexes.values() for digest in index.content}
    named |= {layer.blob for layer in layers.layers.values()}
    found = [f"layer {key}" for key in layers.layers if key not in used]
    found += [f"blob {digest}" for digest in sorted((blobs.whole.keys() | blobs.damaged.keys()) - named)]
    found += [f"file blobs/{name}" for name in blobs.strays] + [f"directory layers/{name}" for name in layers.strays]
    cure = f"the next start of the daemon or {BY_FIX} removes it"
    verdict.problems += [Problem(subject, "nothing uses it", cure, damage=False, fixable=True) for subject in found]


def _blob_fault(digest: str, blobs: BlobFacts, size: int | None = None) -> str:
    """Describe the fault of a blob that somebody needs; empty when it has none."""
    if digest in blobs.damaged:
        return f"{digest} is damaged: {blobs.damaged[digest]}"
    if digest not in blobs.whole:
        return f"{digest} is missing"
    return "" if size in (None, blobs.whole[digest]) else f"{digest} does not have the recorded size of {size} bytes"


def pulled_names(image: Image, names: Mapping[str, str], targets: Collection[str] = ()) -> list[str]:
    """The names under which a registry should have the image: it was pulled or pushed there. Tags come first.

    `targets` are the indexes that it is in.
    """
    own = sorted(name for name, owner in names.items() if owner == image.id or owner in targets)
    repositories = {name.partition("@")[0] for name in own if "@" in name}
    tagged = [name for name in own if "@" not in name and name.rpartition(":")[0] in repositories]
    return tagged + [name for name in own if "@" in name]


def users_of(layer: Layer, images: Iterable[Image]) -> list[Image]:
    return [image for image in images if layer.chain_id in image.chain_ids]


def _image(image: Image, records: Records) -> str:
    targets = records.targets(image)
    tags = sorted(name for name, owner in records.names.items() if owner in targets and "@" not in name)
    return f"image {image.id.removeprefix('sha256:')[:12]}" + (f" ({', '.join(tags)})" if tags else "")


def _container(container: Container) -> str:
    return container.name.removeprefix("/") or container.id[:12]
