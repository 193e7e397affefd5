"""Regular expressions take linear time, whatever they are used on: see `expressions`."""

import re
import time

import pytest

from tests.fuzz.expressions import Expression, expressions, texts
from tests.fuzz.judge import LIMIT

# The short ones come first: exponential time is shown by them, and a long one would not come to an end.
_LENGTHS = (30, 10_000)


@pytest.mark.timeout(600)
def test_no_text_makes_an_expression_slow() -> None:
    found = list(expressions())
    assert len(found) > 100
    slow = [f"{each.place}.{each.method}: {text}" for each in found if (text := _slow(each))]
    assert not slow, "\n".join(slow)


def _slow(expression: Expression) -> str:
    """A text that takes long, shortened; empty if there is none."""
    for length in _LENGTHS:
        for text in texts(expression, length):
            if _time_of(expression, text) > LIMIT and min(_time_of(expression, text) for _ in range(3)) > LIMIT:
                return f"{text[:40]!a} ... {text[-10:]!a}, {len(text)} letters"
    return ""


def _time_of(expression: Expression, text: str) -> float:
    begun = time.thread_time()
    expression.use(text)
    return time.thread_time() - begun


def test_it_knows_a_slow_one_when_it_meets_it() -> None:
    for source in (r"\s+$", r"a(.*?)\s*;", r"(?:a+)+;"):
        expression = Expression("here", re.compile(source), "search")
        assert any(_time_of(expression, text) > 0.005 for text in texts(expression, 22 if "+)+" in source else 2000)), (
            source
        )
