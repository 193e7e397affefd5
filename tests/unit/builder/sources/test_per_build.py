from types import SimpleNamespace
from typing import Any

from husk.builder.sources.per_build import PerBuild

ONE: Any = SimpleNamespace(id="one")
TWO: Any = SimpleNamespace(id="two")


def test_answers_are_for_one_session():
    once: PerBuild[int] = PerBuild()
    once.keep(ONE, "a", 1)
    once.keep(None, "a", 2)
    assert (once.get(ONE, "a"), once.get(TWO, "a"), once.get(ONE, "b"), once.get(None, "a")) == (1, None, None, None)


def test_the_oldest_are_forgotten():
    once: PerBuild[int] = PerBuild()
    for number in range(1500):
        once.keep(ONE, str(number), number)
    assert (once.get(ONE, "0"), once.get(ONE, "1499")) == (None, 1499)
