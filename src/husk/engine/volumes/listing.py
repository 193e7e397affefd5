"""The volumes that a list shows, by filters. Pure."""

from collections.abc import Collection, Iterable

from husk.engine.model.filters import Filters
from husk.engine.model.volume import Volume

FILTERS = ("dangling", "driver", "label", "name")
PRUNE_FILTERS = ("all", "label", "label!")


def select(volumes: Iterable[Volume], used: Collection[str], filters: Filters) -> list[Volume]:
    """`used` are the names of the volumes that a container has."""
    dangling = filters.boolean("dangling", False) if "dangling" in filters else None
    names, drivers = filters.get("name"), filters.get("driver")
    return [
        volume
        for volume in volumes
        if (not names or any(name in volume.name for name in names))
        and (not drivers or volume.driver in drivers)
        and filters.matches_labels(volume.labels or {})
        and (dangling is None or dangling == (volume.name not in used))
    ]


def prunable(volumes: Iterable[Volume], used: Collection[str], filters: Filters, everything: bool) -> list[Volume]:
    """Those that no container has: without a name of their own only, unless `everything` is meant. One with options is
    a way to what lies elsewhere, and stays."""
    everything = filters.switch("all", everything)
    return [
        volume
        for volume in volumes
        if volume.name not in used
        and not volume.options
        and (everything or volume.anonymous)
        and filters.matches_labels(volume.labels or {})
    ]
