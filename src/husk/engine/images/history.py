"""`docker history`: the steps that an image's configuration records, newest first, with what each added."""

from collections.abc import Callable

from husk.engine.images.catalog import ImageCatalog
from husk.engine.model.image import HistoryStep, Image
from husk.storage.layers.store import Layer

UNKNOWN = "<missing>"


def history_of(image: Image, catalog: ImageCatalog, layer: Callable[[str], Layer | None]) -> list[HistoryStep]:
    steps: list[HistoryStep] = []
    chain = iter(image.chain_ids)
    for step in image.history:
        added = None if step.empty_layer else layer(next(chain, ""))
        steps.append(
            HistoryStep(
                id=UNKNOWN,
                created=step.created,
                created_by=step.created_by,
                tags=[],
                size=added.size if added else 0,
                comment=step.comment,
            )
        )
    steps.reverse()
    # The newest step is the image itself; the newest that its parent has, too, is that parent.
    ancestor: Image | None = image
    left = len(steps)
    while ancestor is not None and 0 < len(ancestor.history) <= left:
        shown = steps[len(steps) - len(ancestor.history)]
        shown.id = ancestor.id
        shown.tags = [name.familiar for name in catalog.names(ancestor) if not name.digest]
        left = len(ancestor.history) - 1
        ancestor = catalog.get(ancestor.parent) if ancestor.parent else None
    return steps
