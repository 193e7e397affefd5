"""Filters as BuildKit's clients write them (`type==regular,shared`) in the words of our own. Pure."""

import re
from collections.abc import Sequence

from husk.builder.cache.prune import FILTERS
from husk.engine.model.filters import Filters
from husk.errors import InvalidParameter

_TERM = re.compile(r"(?P<key>[\w.-]+)(?:(?P<how>==|=|~=)(?P<value>\"[^\"]*\"|[^,]*))?", re.ASCII)


def read(texts: Sequence[str], unused_for: int = 0) -> list[Filters]:
    """Each text is one filter, and what fits one of them is meant; none at all means everything.

    `unused_for` is a time in nanoseconds that has to have gone by since a record was used.
    """
    also = {"until": [f"{unused_for // 10**9}s"]} if unused_for else {}
    return [Filters({**_terms(text), **also}) for text in texts or [""]]


def _terms(text: str) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        term = _TERM.fullmatch(part)
        if term is None or term["key"] not in FILTERS:
            raise InvalidParameter(f"invalid filter {part!r}: known are {', '.join(FILTERS)}")
        value = "true" if term["how"] is None else term["value"].strip('"')
        fields.setdefault(term["key"], []).append(value)
    return fields
