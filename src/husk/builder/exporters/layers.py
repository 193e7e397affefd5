"""A build's result becomes an image: its stack the layers, its configuration the image's."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from msgspec import structs

from husk.builder.graph import stacks
from husk.engine.images.make import make_image, require_depth
from husk.engine.images.store import ImageStore
from husk.engine.model.clock import now_ns, parse_rfc3339, rfc3339, shortest_rfc3339
from husk.engine.model.image import HistoryEntry, Image, ImageConfig, RootFS
from husk.registry.reference import Reference
from husk.storage.layers.store import Layer

COMMENT = "buildkit.exporter.image.v0"


class Packer(Protocol):
    """Makes layers of a stack: `husk.builder.store.diffs`."""

    async def chain_ids(self, stack: str, clamp: int | None = None) -> list[str]: ...

    async def layers(self, stack: str, clamp: int | None = None) -> list[Layer]: ...


class Told(Protocol):
    """The facts that the cache knows of the diffs of a stack."""

    def made_at(self, diff: str) -> int | None: ...

    def description_of(self, diff: str) -> str: ...


class Finisher:
    """Completes the configurations of images when their layers are known."""

    def __init__(self, packer: Packer, told: Told) -> None:
        self.packer = packer
        self._told = told

    def finished(
        self, stack: str, document: ImageConfig, layers: Sequence[Layer], epoch: int | None = None
    ) -> ImageConfig:
        """The configuration with its layers, and with a history that fits them; nothing new is later than `epoch`."""
        latest = shortest_rfc3339(epoch * 10**9) if epoch is not None else ""
        steps = [self._step(element, latest) for element in stacks.elements(stack)]
        history = complete_history(document.history, steps)
        created = document.created or (history[-1].created if history else "") or latest or shortest_rfc3339(now_ns())
        root = RootFS(diff_ids=[layer.diff_id for layer in layers])
        return structs.replace(document, rootfs=root, history=history, created=_earlier(created, latest))

    def _step(self, element: str, latest: str) -> HistoryEntry:
        made = self._told.made_at(element)
        return HistoryEntry(
            created=_earlier(shortest_rfc3339(made), latest) if made is not None else "",
            created_by=self._told.description_of(element),
            comment=COMMENT,
        )


def _earlier(time: str, latest: str) -> str:
    return latest if latest and parse_rfc3339(time) > parse_rfc3339(latest) else time


class ImageExporter:
    """A plain image of our store: its layers are as builds have them."""

    def __init__(self, store: ImageStore, finisher: Finisher) -> None:
        self._store = store
        self._finisher = finisher

    async def export(
        self,
        stack: str,
        document: ImageConfig,
        names: Sequence[Reference],
        *,
        parent: str = "",
        epoch: int | None = None,
        clamp: int | None = None,
    ) -> Image:
        """Make the image of a stack, which the caller holds, in the store. No file of a layer is later than `clamp`.

        `parent` is the id of the image that it was made from.
        """
        require_depth(len(stacks.elements(stack)))
        packer = self._finisher.packer
        chain = await packer.chain_ids(stack, clamp)
        content: list[str] = []
        try:
            async with self._store.pins.hold(chain):
                layers = await packer.layers(stack, clamp)
                finished = self._finisher.finished(stack, document, layers, epoch)
                parent = parent if self._store.catalog.get(parent) is not None else ""
                image = await make_image(self._store.blobs, finished, layers, parent)
                content = image.content
                if names:
                    image = structs.replace(image, last_tagged=rfc3339(now_ns()))
                known = self._store.catalog.get(image.id)
                await self._store.catalog.add(image, *names)
        except BaseException:
            await asyncio.shield(self._store.release(chain, content))
            raise
        if known is not None:
            # The same image may have had another manifest, over layers in another form.
            await self._store.release([], known.content)
        self._store.tell("create", image)
        for name in names:
            self._store.tell("tag", image, name.familiar)
        return image


def complete_history(history: Sequence[HistoryEntry], layers: Sequence[HistoryEntry]) -> list[HistoryEntry]:
    """A step for each layer and a time for each step; `layers` are steps of what is known of the layers alone."""
    steps: list[HistoryEntry] = []
    number = 0
    for step in history:
        if step.empty_layer or number >= len(layers):
            steps.append(structs.replace(step, empty_layer=True))
        else:
            steps.append(structs.replace(step, created=step.created or layers[number].created))
            number += 1
    return _with_times([*steps, *layers[number:]])


def _with_times(steps: Sequence[HistoryEntry]) -> list[HistoryEntry]:
    """A step without a time has that of the last layer before it; those before the first new layer have that one's."""
    first = next((number for number, step in enumerate(steps) if not step.created), len(steps))
    time = next((step.created for step in steps[first:] if step.created), steps[first - 1].created if first else "")
    found = list(steps[:first])
    for step in steps[first:]:
        time = step.created or time
        found.append(structs.replace(step, created=time))
    return found
