"""A record as it is, but for some fields: records never change."""

from typing import TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


def but(record: S, **fields: object) -> S:
    """`but(task, node_id="n", status__state="running")`: two underscores lead into a part of the record."""
    changes: dict[str, object] = {}
    for name, value in fields.items():
        outer, _, inner = name.partition("__")
        changes[outer] = but(changes.get(outer, getattr(record, outer)), **{inner: value}) if inner else value  # type: ignore[type-var]
    return msgspec.structs.replace(record, **changes)
