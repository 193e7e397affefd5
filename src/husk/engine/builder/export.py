"""A build's result becomes an image: its stack the layers, its configuration the image's."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from msgspec import structs

from husk.engine.builder import stacks
from husk.engine.images.make import make_image
from husk.engine.images.store import ImageStore
from husk.engine.model.clock import now_ns, rfc3339, shortest_rfc3339
from husk.engine.model.image import History, Image, ImageConfig, RootFS
from husk.registry.reference import Reference
from husk.storage.layers.store import Layer

COMMENT = "buildkit.exporter.image.v0"


class Packer(Protocol):
    """Makes layers of a stack: `husk.storage.diffs`."""

    async def chain_ids(self, stack: str, clamp: int | None = None) -> list[str]: ...

    async def layers(self, stack: str, clamp: int | None = None) -> list[Layer]: ...


class Told(Protocol):
    """What is known of the diffs of a stack: the cache."""

    def made_at(self, diff: str) -> int | None: ...

    def description_of(self, diff: str) -> str: ...


class ImageExporter:
    def __init__(self, store: ImageStore, packer: Packer, told: Told) -> None:
        self._store = store
        self._packer = packer
        self._told = told

    async def export(self, stack: str, document: ImageConfig, names: Sequence[Reference], parent: str = "") -> Image:
        """Whoever calls holds what the stack consists of."""
        chain = await self._packer.chain_ids(stack)
        content: list[str] = []
        try:
            async with self._store.pins.hold(chain):
                layers = await self._packer.layers(stack)
                finished = self.finished(stack, document, layers)
                image = await make_image(self._store.blobs, finished, layers, parent)
                content = [image.id, image.manifest]
                if names:
                    image.last_tagged = rfc3339(now_ns())
                await self._store.catalog.add(image, *names)
        except BaseException:
            await asyncio.shield(self._store.release(chain, content))
            raise
        for name in names:
            self._store.events.publish("image", "tag", image.id, {"name": name.familiar})
        return image

    def finished(self, stack: str, document: ImageConfig, layers: Sequence[Layer]) -> ImageConfig:
        """The configuration with its layers, and with a history that fits them."""
        history = complete_history(document.history, [self._step(element) for element in stacks.elements(stack)])
        created = document.created or (history[-1].created if history else "") or shortest_rfc3339(now_ns())
        root = RootFS(diff_ids=[layer.diff_id for layer in layers])
        return structs.replace(document, rootfs=root, history=history, created=created)

    def _step(self, element: str) -> History:
        made = self._told.made_at(element)
        return History(
            created=shortest_rfc3339(made) if made is not None else "",
            created_by=self._told.description_of(element),
            comment=COMMENT,
        )


def complete_history(history: Sequence[History], layers: Sequence[History]) -> list[History]:
    """A step for each layer and a time for each step; `layers` are steps of what is known of the layers alone."""
    steps = [structs.replace(step) for step in history]
    number = 0
    for step in steps:
        step.empty_layer = step.empty_layer or number >= len(layers)
        if not step.empty_layer:
            step.created = step.created or layers[number].created
            number += 1
    steps += [structs.replace(layer) for layer in layers[number:]]
    _fill_times(steps)
    return steps


def _fill_times(steps: list[History]) -> None:
    """A step without a time has that of the last layer before it; those before the first new layer have that one's."""
    first = next((number for number, step in enumerate(steps) if not step.created), len(steps))
    time = next((step.created for step in steps[first:] if step.created), steps[first - 1].created if first else "")
    for step in steps[first:]:
        time = step.created or time
        step.created = time
