"""Which images a list shows: by filters, newest first; images that only others build on need `all`."""

import fnmatch

from husk.engine.images.catalog import ImageCatalog
from husk.engine.model.clock import parse_rfc3339
from husk.engine.model.filters import Filters
from husk.engine.model.image import Image
from husk.registry.reference import Reference

FILTERS = ("before", "dangling", "label", "label!", "reference", "since", "until")


def select(catalog: ImageCatalog, all: bool, filters: Filters) -> list[Image]:
    chosen = sorted(catalog.shown(), key=created_ns, reverse=True)
    befores = [created_ns(catalog.find(text)) for text in filters.get("before")]
    sinces = [created_ns(catalog.find(text)) for text in filters.get("since")]
    untils = filters.moments("until")
    patterns = filters.get("reference")
    dangling = filters.boolean("dangling", False) if "dangling" in filters else None

    def wanted(image: Image) -> bool:
        names, children = catalog.names(image), catalog.children(image)
        if dangling is True and (children or any(not name.digest for name in names)):
            return False
        if not names and (dangling is False or (children and not all)):
            return False
        if patterns and not any(matches(name, pattern) for name in names for pattern in patterns):
            return False
        moment = created_ns(image)
        return (
            filters.matches_labels(image.config.labels)
            and not any(moment >= edge for edge in befores)
            and not any(moment <= edge for edge in sinces)
            and not any(moment >= edge for edge in untils)
        )

    return [image for image in chosen if wanted(image)]


def created_ns(image: Image) -> int:
    return parse_rfc3339(image.created) if image.created else 0


def matches(name: Reference, pattern: str) -> bool:
    """Shell patterns against the familiar name, with or without tag; `*` does not cross a slash."""
    for text in (name.familiar, name.familiar_name):
        if text.count("/") == pattern.count("/") and all_match(text, pattern):
            return True
    return False


def all_match(text: str, pattern: str) -> bool:
    parts = zip(text.split("/"), pattern.split("/"), strict=True)
    return all(fnmatch.fnmatchcase(part, wanted) for part, wanted in parts)
