"""Filters of clients: the one place that reads the API's `filters` parameter and knows what its values mean.

On the wire it is a JSON object: `{"label": ["a=b"], "status": ["running"]}`, or the older `{"label": {"a=b": true}}`
that Go clients still send. Every key must match. Truths, numbers, moments and labels are read here, with Docker's
messages; other values are the business of the thing that is filtered. A value that cannot be read is refused: it must
never mean "all", for prunes delete what is meant.
"""

import re
from collections.abc import Collection, Iterator, Mapping

from husk.engine.model.clock import parse_moment
from husk.errors import InvalidParameter
from husk.text.documents import MalformedDocument, decode
from husk.text.patterns import pattern

_TRUE = frozenset({"1", "true"})
_FALSE = frozenset({"0", "false"})
# What Go's ParseBool takes.
_YES = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_NO = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_NUMBER = pattern(r"[+-]?\d{1,19}", re.ASCII)

# How many values a client may name: each of them is looked for in each thing that is listed.
_MOST_VALUES = 2000

_WIRE = dict[str, list[str] | dict[str, bool] | None] | None


class Filters:
    """A validated set of filters; empty when the client sent none."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, list[str]] | None = None) -> None:
        self._fields: dict[str, list[str]] = dict(fields or {})

    @classmethod
    def parse(cls, text: str | None, accepted: Collection[str] | None) -> "Filters":
        """Read the wire form; a key that is not `accepted` is refused by name. None accepts, and ignores, any."""
        if not text:
            return cls()
        try:
            raw = decode(text, _WIRE) or {}
        except MalformedDocument as error:
            raise InvalidParameter("invalid filter") from error
        if sum(len(values or ()) for values in raw.values()) > _MOST_VALUES:
            raise InvalidParameter(f"invalid filter: more than {_MOST_VALUES} values")
        for key in raw:
            if accepted is not None and key not in accepted:
                raise InvalidParameter(f"invalid filter '{key}'")
        return cls({key: list(dict.fromkeys(values or ())) for key, values in raw.items()})

    def get(self, key: str) -> list[str]:
        """The values of a key, each once, in the client's order."""
        return self._fields.get(key, [])

    def boolean(self, key: str, default: bool) -> bool:
        """A key whose value is a truth: `dangling=true`. Both or neither of true and false is refused."""
        if key not in self._fields:
            return default
        values = self._fields[key]
        truth = any(value in _TRUE for value in values)
        if truth == any(value in _FALSE for value in values):
            shown = f"={_shown(values)}" if values else ""
            raise InvalidParameter(f"invalid filter '{key}{shown}'")
        return truth

    def switch(self, key: str, default: bool) -> bool:
        """A truth in any of Go's spellings, at most one: `all` of volumes."""
        values = self.get(key)
        if len(values) > 1:
            raise InvalidParameter(f"invalid filter '{key}={_shown(values)}': only one value is expected")
        if values and values[0] not in _YES | _NO:
            raise InvalidParameter(f"invalid filter '{key}': \"{values[0]}\" is neither true nor false")
        return values[0] in _YES if values else default

    def numbers(self, key: str) -> list[int]:
        return [self._number(key, value) for value in self.get(key)]

    def moments(self, key: str) -> list[int]:
        """Points in time, in nanoseconds: seconds since the epoch, RFC 3339, or durations back from now."""
        return [parse_moment(value) for value in self.get(key)]

    def until(self) -> int | None:
        """The one moment of a prune: what is younger stays. None when the client named none."""
        if "until" not in self:
            return None
        values = self.get("until")
        if len(values) > 1:
            raise InvalidParameter("more than one until filter specified")
        if not values:
            raise InvalidParameter("invalid filter 'until'")
        return parse_moment(values[0])

    @staticmethod
    def _number(key: str, value: str) -> int:
        if not _NUMBER.fullmatch(value) or not -(2**63) <= int(value) < 2**63:
            raise InvalidParameter(f"invalid filter '{key}={value}'")
        return int(value)

    def matches_labels(self, labels: Mapping[str, str]) -> bool:
        """True if every `label` value holds (`key`, or `key=value`) and no `label!` value does.

        A `label!` without a value refuses all, as in Docker.
        """
        if "label!" in self and not self.get("label!"):
            return False
        return all(_has(labels, wanted) for wanted in self.get("label")) and not any(
            _has(labels, refused) for refused in self.get("label!")
        )

    def __contains__(self, key: object) -> bool:
        return key in self._fields

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __bool__(self) -> bool:
        return bool(self._fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filters) and self._fields == other._fields

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._fields)))

    def __repr__(self) -> str:
        return f"Filters({self._fields!r})"


NO_FILTERS = Filters()


def _has(labels: Mapping[str, str], wanted: str) -> bool:
    key, separator, value = wanted.partition("=")
    return key in labels and (not separator or labels[key] == value)


def _shown(values: list[str]) -> str:
    """Go's way to print a list of strings, which clients see in dockerd's message."""
    return "[" + " ".join(values) + "]"
