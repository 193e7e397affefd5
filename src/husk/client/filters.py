"""Filters, as the API takes them."""

from collections.abc import Mapping
from typing import Any


def filters_of(given: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """A list of words for each name; truths as docker writes them, `{"label": {"a": "b"}}` as `a=b`."""
    found = {}
    for name, value in (given or {}).items():
        if isinstance(value, Mapping):
            value = [f"{key}={each}" for key, each in value.items()]
        values = value if isinstance(value, list | tuple) else [value]
        found[name] = [str(each).lower() if isinstance(each, bool) else str(each) for each in values]
    return found
