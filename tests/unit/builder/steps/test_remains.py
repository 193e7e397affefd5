"""Remains of failed steps, for as long as their builds go on."""

from types import SimpleNamespace
from typing import Any

from husk.builder.steps.remains import Remains


def session(id: str) -> Any:
    return SimpleNamespace(id=id)


async def test_it_goes_with_the_build():
    gone = []

    async def forget(stack: str) -> None:
        gone.append(stack)

    kept = Remains(forget, most=2)
    await kept.keep(session("a"), ["one", "", "two"])
    await kept.keep(session("b"), ["three"])
    await kept.clear(None)
    assert gone == []
    await kept.clear(session("a"))
    await kept.clear(session("a"))
    assert gone == ["one", "two"]
    await kept.keep(session("c"), ["four"])
    await kept.keep(session("d"), ["five"])
    assert gone == ["one", "two", "three"]
