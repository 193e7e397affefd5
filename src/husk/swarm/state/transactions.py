"""Records that the hosts of a swarm share: the words of a store, without a store.

A record has a kind, a key and a body, which is a JSON object. Each transaction makes a new revision of the store; the
version of a record is the revision that wrote it last. The field `version` of a body belongs to the store: what a
writer puts there means nothing.

As much at once as one transaction, or one message, takes: counted in pieces and in bytes.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

import msgspec

from husk.errors import Conflict, InvalidParameter, Unavailable
from husk.text.documents import MalformedDocument, decode

NEW = 0
T = TypeVar("T")

# etcd takes 128 steps in a transaction and 1.5 MiB in a request; a config alone may have 1.3 MB.
MOST_STEPS, MOST_BYTES = 100, 512 * 1024


"""The version of a record that is not there."""


class ClusterRecord(NamedTuple):
    kind: str
    key: str
    body: bytes
    version: int
    lease: int = 0

    @property
    def name(self) -> tuple[str, str]:
        return self.kind, self.key


class Put(NamedTuple):
    """Write a record, which must have `version` now, unless that is None. Under a lease it is gone when that ends."""

    kind: str
    key: str
    body: bytes
    version: int | None = None
    lease: int = 0


class Delete(NamedTuple):
    """Remove a record, which must have `version` now, unless that is None; then it need not be there."""

    kind: str
    key: str
    version: int | None = None


class Check(NamedTuple):
    """Change nothing, but only if a record has this version now."""

    kind: str
    key: str
    version: int


Step = Put | Delete | Check


class Listing(NamedTuple):
    """All records of a kind as they were at one revision."""

    records: tuple[ClusterRecord, ...]
    revision: int


class News(NamedTuple):
    """The news that a watch tells. `all`: these are all records there are, whatever was told before."""

    revision: int
    all: bool
    records: tuple[ClusterRecord, ...]
    gone: tuple[tuple[str, str], ...] = ()


class Stale(Conflict):
    """A record has another version than the transaction wants; nothing was changed."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self.names = tuple(names)
        told = ", ".join(f"{kind} {key}" for kind, key in self.names)
        super().__init__(f"somebody else has changed {told or 'a record'} meanwhile: look again")


class StoreUnavailable(Unavailable):
    """The store cannot be asked now. `unknown`: it may have taken the transaction, or may yet."""

    def __init__(self, message: str, unknown: bool = False) -> None:
        super().__init__(message)
        self.unknown = unknown


def check_steps(steps: Iterable[Step]) -> None:
    """Raise for what no store could do: a record twice in a transaction, a name that cannot be told from others."""
    seen: set[tuple[str, str]] = set()
    for step in steps:
        check_name(step.kind, step.key)
        if (step.kind, step.key) in seen:
            raise InvalidParameter(f"{step.kind} {step.key} is twice in one transaction")
        seen.add((step.kind, step.key))


def check_name(kind: str, key: str) -> None:
    if not kind or not key or "/" in kind or "\0" in kind + key:
        raise InvalidParameter(f"no record can have the kind {kind!r} and the key {key!r}")


class _Versioned(msgspec.Struct):
    version: int = NEW


def version_in(body: bytes) -> int:
    """The version that a body carries; Malformed for what is no such thing."""
    return decode(body, _Versioned).version


def with_version(body: bytes, version: int) -> bytes:
    """The body with its version in it, everything else as it is."""
    try:
        fields = decode(body, dict[str, msgspec.Raw])
    except MalformedDocument as error:
        raise InvalidParameter(f"the body of a record must be a JSON object: {error}") from None
    return msgspec.json.encode(fields | {"version": version})


def batches(
    items: Iterable[T], size: Callable[[T], int], *, steps: int | None = None, most: int | None = None
) -> Iterator[list[T]]:
    """The items in their order, each batch within both limits; one that is too large by itself is alone in its own."""
    steps, most = MOST_STEPS if steps is None else steps, MOST_BYTES if most is None else most
    some: list[T] = []
    taken = 0
    for item in items:
        needed = size(item)
        if some and (len(some) == steps or taken + needed > most):
            yield some
            some, taken = [], 0
        some.append(item)
        taken += needed
    if some:
        yield some
