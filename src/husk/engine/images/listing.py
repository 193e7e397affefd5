"""The images that a list shows: by filters, newest first; images that only others build on need `all`."""

import re
from collections.abc import Iterable

from husk.engine.images.catalog import ImageCatalog
from husk.engine.model.clock import parse_rfc3339
from husk.engine.model.filters import Filters
from husk.engine.model.image import Image
from husk.errors import InvalidParameter
from husk.registry.reference import Reference
from husk.text.re2 import STEPS, Finder

FILTERS = ("before", "dangling", "label", "label!", "reference", "since", "until")

_WILDCARDS = frozenset("*?[")
_MOST_WILD = 64
_MOST_CHARACTERS = 2048
# Enough for the names of tens of thousands of images.
_STEPS = 4 * STEPS
_ANY = "[^/]"
# What may stand behind a `[`; a `]` that comes first is one of the characters.
_CHOICE = re.compile(r"(!?)(\]?[^\]]*)\]", re.DOTALL)
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
_BEHIND = r"\\\g<0>"


def select(catalog: ImageCatalog, all: bool, filters: Filters) -> list[Image]:
    chosen = sorted(catalog.shown(), key=created_ns, reverse=True)
    befores = [created_ns(catalog.find(text)) for text in filters.get("before")]
    sinces = [created_ns(catalog.find(text)) for text in filters.get("since")]
    untils = filters.moments("until")
    patterns = name_patterns(filters)
    dangling = filters.boolean("dangling", False) if "dangling" in filters else None

    def wanted(image: Image) -> bool:
        names, children = catalog.names(image), catalog.children(image)
        if dangling is True and (children or any(not name.digest for name in names)):
            return False
        if not names and (dangling is False or (children and not all)):
            return False
        if patterns is not None and not any(patterns.match(name) for name in names):
            return False
        moment = created_ns(image)
        return (
            filters.matches_labels(image.config.labels)
            and not any(moment >= edge for edge in befores)
            and not any(moment <= edge for edge in sinces)
            and not any(moment >= edge for edge in untils)
        )

    return [image for image in chosen if wanted(image)]


def name_patterns(filters: Filters) -> "NamePatterns | None":
    """The names that a list shows; None for all."""
    patterns = filters.get("reference")
    return NamePatterns(patterns) if patterns else None


def created_ns(image: Image) -> int:
    return parse_rfc3339(image.created) if image.created else 0


class NamePatterns:
    """Shell patterns against the familiar name, with or without tag; `*` does not cross a slash.

    They come from clients: they are followed all at once, in linear time, and one without a wildcard is just a name.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._names: set[str] = set()
        wild: list[str] = []
        for pattern in patterns:
            if _WILDCARDS.isdisjoint(pattern):
                self._names.add(pattern)
            else:
                wild.append(pattern)
        if len(wild) > _MOST_WILD or sum(map(len, wild)) > _MOST_CHARACTERS:
            raise InvalidParameter(
                f"invalid filter 'reference': at most {_MOST_WILD} patterns with wildcards of {_MOST_CHARACTERS} "
                "characters in all are taken"
            )
        self._wild = Finder(map(_expression, wild), _STEPS) if wild else None

    def match(self, name: Reference) -> bool:
        texts = (name.familiar, name.familiar_name)
        if any(text in self._names for text in texts):
            return True
        return self._wild is not None and any(map(self._wild.finds, texts))


def _expression(pattern: str) -> str:
    """The regular expression for the whole of what a shell pattern means."""
    return rf"\A{'/'.join(map(_part, pattern.split('/')))}\z"


def _part(pattern: str) -> str:
    found: list[str] = []
    place = 0
    while place < len(pattern):
        letter = pattern[place]
        place += 1
        if letter == "*":
            if found[-1:] != [_ANY + "*"]:
                found.append(_ANY + "*")
        elif letter == "?":
            found.append(_ANY)
        elif letter == "[" and (choice := _CHOICE.match(pattern, place)) is not None:
            negated, inside = choice.groups()
            found.append(f"[{'^' * bool(negated)}{_SPECIAL.sub(_BEHIND, inside)}]")
            place = choice.end()
        else:
            found.append(_SPECIAL.sub(_BEHIND, letter))
    return "".join(found)
