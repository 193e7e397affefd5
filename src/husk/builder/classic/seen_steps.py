"""The memory of classic builds: which instructions that change no file were carried out, and when, and which
images were made. Kept from one daemon to the next.

An instruction is known by its id, which tells all that came before it, too.
"""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct

from husk.storage.state.store import Change

KIND = "build-step"
MOST = 5000
# So many are noted before others have a turn.
_AT_ONCE = 200

T = TypeVar("T")


class SeenStep(Struct, frozen=True):
    """`made` is in nanoseconds, 0 where it does not count; `number` tells which were seen before it."""

    key: str
    number: int
    made: int = 0
    image: str = ""


class StateOfSteps(Protocol):
    """Records that outlive the daemon: `husk.storage.state.store`."""

    def records(self, kind: str, type: type[T], /) -> Mapping[str, T]: ...

    def settle_soon(self, *changes: Change) -> None: ...


class SeenSteps:
    """The oldest ones are forgotten."""

    def __init__(self, state: StateOfSteps | None = None, kept: Mapping[str, SeenStep] | None = None) -> None:
        self._state = state
        self._seen = {one.key: one for one in sorted((kept or {}).values(), key=lambda one: one.number)}

    @classmethod
    def open(cls, state: StateOfSteps) -> "SeenSteps":
        return cls(state, state.records(KIND, SeenStep))

    def made(self, id: str) -> int | None:
        """Return the time when an instruction was carried out; None if it was not."""
        seen = self._seen.get(id)
        return seen.made or None if seen else None

    def image(self, id: str) -> str:
        """The id of the image that a build ended with there."""
        seen = self._seen.get(id)
        return seen.image if seen else ""

    async def keep(self, steps: Mapping[str, int], images: Mapping[str, str]) -> None:
        """Keep all that one build has carried out, with the times, and the images behind some of it."""
        ids = list(dict.fromkeys([*steps, *images]))[-MOST:]
        for start in range(0, len(ids), _AT_ONCE):
            self._keep(ids[start : start + _AT_ONCE], steps, images)
            await asyncio.sleep(0)

    def _keep(self, ids: Sequence[str], steps: Mapping[str, int], images: Mapping[str, str]) -> None:
        last = next(reversed(self._seen.values()), None)
        changed = {}
        for number, id in enumerate(ids, last.number + 1 if last else 0):
            self._seen.pop(id, None)
            changed[id] = self._seen[id] = SeenStep(id, number, steps.get(id, 0), images.get(id, ""))
        changes = [Change(KIND, id, msgspec.json.encode(one)) for id, one in changed.items()]
        for oldest in list(islice(self._seen, max(0, len(self._seen) - MOST))):
            del self._seen[oldest]
            changes.append(Change(KIND, oldest, None))
        if self._state is not None and changes:
            self._state.settle_soon(*changes)
