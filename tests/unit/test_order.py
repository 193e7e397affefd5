"""The order of the files: what is long comes first, unit tests come last."""

from pathlib import Path

from tests.support.order import LONGEST, place_of

TESTS = Path(__file__).resolve().parents[1]


def test_long_files_then_daemons_then_units() -> None:
    names = ["unit/test_order.py", "clients/test_compose.py", LONGEST[1], LONGEST[0]]
    assert sorted(names, key=lambda name: place_of(TESTS)(TESTS / name)) == [*LONGEST[:2], *names[1::-1]]


def test_the_longest_exist() -> None:
    assert [name for name in LONGEST if not (TESTS / name).is_file()] == []


def test_files_elsewhere_have_a_place() -> None:
    assert place_of(TESTS)(Path("/elsewhere/test_it.py")) == (1, 0)
