"""Records of builds can be asked for without the builder, where there are none."""

from collections.abc import Iterable
from typing import Any

import pytest

from husk.engine.late_builder import LateBuilder


class State:
    def __init__(self, **kept: str) -> None:
        self.kept = {kind.replace("_", "-"): {key: b"{}"} for kind, key in kept.items()}

    async def fetch_several(self, kinds: Iterable[str]) -> dict[str, dict[str, bytes]]:
        return {kind: self.kept.get(kind, {}) for kind in kinds}


class Builder:
    async def items(self) -> list[str]:
        return ["a record"]


def late(state: State, made: list[Builder]) -> Any:
    async def make() -> Builder:
        made.append(Builder())
        return made[-1]

    return LateBuilder(make, state)  # type: ignore[arg-type]


@pytest.mark.parametrize("state", [State(), State(volume="v")])
async def test_where_builds_have_kept_nothing_no_builder_is_made(state: State) -> None:
    made: list[Builder] = []
    assert await late(state, made).cache() == []
    assert made == []


@pytest.mark.parametrize("state", [State(build_record="r"), State(build_cache_mount="m")])
async def test_the_builder_tells_what_it_keeps(state: State) -> None:
    made: list[Builder] = []
    assert await late(state, made).cache() == ["a record"]
    assert len(made) == 1


async def test_a_builder_that_is_there_is_asked() -> None:
    made: list[Builder] = []
    builder = late(State(), made)
    await builder.get()
    assert await builder.cache() == ["a record"]
