"""The answers of servers about files of the web, to ask if they still hold: kept from one daemon to the next."""

import hashlib
from collections.abc import Mapping
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct

from husk.builder.solver.source_policy import ResolvedFile
from husk.storage.state.store import Change

KIND = "web-file"
MOST = 1000

T = TypeVar("T")


class SeenFile(Struct, frozen=True):
    """One of them; `number` tells which were seen before it. What was asked is not kept: it may have a password."""

    key: str
    found: ResolvedFile
    number: int


class State(Protocol):
    """Records that outlive the daemon: `husk.storage.state.store`."""

    def records(self, kind: str, type: type[T], /) -> Mapping[str, T]: ...

    async def settle(self, *changes: Change, lazy: bool = False) -> None: ...


class SeenFiles:
    """Answers by questions; the oldest ones are forgotten."""

    def __init__(
        self, state: State | None = None, kept: Mapping[str, SeenFile] | None = None, most: int = MOST
    ) -> None:
        self._most = most
        self._state = state
        self._seen = {one.key: one for one in sorted((kept or {}).values(), key=lambda one: one.number)}

    @classmethod
    def open(cls, state: State, most: int = MOST) -> "SeenFiles":
        return cls(state, state.records(KIND, SeenFile), most)

    def get(self, question: str) -> ResolvedFile | None:
        seen = self._seen.get(key_of(question))
        return seen.found if seen else None

    async def keep(self, question: str, found: ResolvedFile) -> None:
        if self.get(question) == found:
            return
        key, last = key_of(question), next(reversed(self._seen.values()), None)
        self._seen.pop(key, None)
        new = self._seen[key] = SeenFile(key, found, last.number + 1 if last else 0)
        changes = [Change(KIND, new.key, msgspec.json.encode(new))]
        while len(self._seen) > self._most:
            oldest = next(iter(self._seen))
            del self._seen[oldest]
            changes.append(Change(KIND, oldest, None))
        if self._state is not None:
            await self._state.settle(*changes, lazy=True)


def key_of(question: str) -> str:
    return hashlib.sha256(question.encode("utf-8", "surrogateescape")).hexdigest()
