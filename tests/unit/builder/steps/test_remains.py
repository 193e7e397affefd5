"""Remains of failed steps, for as long as their builds go on."""

from types import SimpleNamespace
from typing import Any

from husk.builder.steps import remains
from husk.builder.steps.remains import Remains


def session(id: str) -> Any:
    return SimpleNamespace(id=id)


async def test_it_goes_with_the_build(monkeypatch):
    gone = []

    async def forget(stack: str) -> None:
        gone.append(stack)

    kept = Remains(forget)
    await kept.keep(session("a"), ["one", "", "two"])
    await kept.keep(session("b"), ["three"])
    await kept.clear(None)
    assert gone == []
    await kept.clear(session("a"))
    await kept.clear(session("a"))
    assert gone == ["one", "two"]
    monkeypatch.setattr(remains, "_MOST", 1)
    await kept.keep(session("c"), ["four"])
    assert gone == ["one", "two", "three"]
