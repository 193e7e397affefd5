"""Which of many does the client mean? The one place that reads the API's `filters` parameter.

On the wire it is a JSON object: `{"label": ["a=b"], "status": ["running"]}`, or the older `{"label": {"a=b": true}}`
that Go clients still send. Every key must match; what its values mean is the business of the thing that is filtered.
"""

from collections.abc import Collection, Iterator, Mapping

import msgspec

from husk.errors import InvalidParameter

_TRUE = frozenset({"1", "true"})
_FALSE = frozenset({"0", "false"})

_decoder = msgspec.json.Decoder(dict[str, list[str] | dict[str, bool] | None] | None)


class Filters:
    """A validated set of filters; empty when the client sent none."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, list[str]] | None = None) -> None:
        self._fields: dict[str, list[str]] = dict(fields or {})

    @classmethod
    def parse(cls, text: str | None, accepted: Collection[str]) -> "Filters":
        """Read the wire form; a key that is not `accepted` is refused by name."""
        if not text:
            return cls()
        try:
            raw = _decoder.decode(text) or {}
        except (msgspec.MsgspecError, UnicodeEncodeError) as error:
            raise InvalidParameter(f"invalid filter: {error}") from error
        for key in raw:
            if key not in accepted:
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

    def matches_labels(self, labels: Mapping[str, str]) -> bool:
        """True if every `label` value holds (`key`, or `key=value`) and no `label!` value does."""
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


def _has(labels: Mapping[str, str], wanted: str) -> bool:
    key, separator, value = wanted.partition("=")
    return key in labels and (not separator or labels[key] == value)


def _shown(values: list[str]) -> str:
    """Go's way to print a list of strings, which clients see in dockerd's message."""
    return "[" + " ".join(values) + "]"
