"""The order of the files: what is long comes first, swarms are apart, unit tests come last."""

from pathlib import Path

from tests.support.order import LONGEST, SWARMS, arranged

TESTS = Path(__file__).resolve().parents[1]


def test_long_files_then_daemons_then_units() -> None:
    names = ["unit/test_order.py", "clients/test_new.py", LONGEST[1], LONGEST[0]]
    assert arranged(names) == [*LONGEST[:2], *names[1::-1]]


def test_swarms_are_far_from_each_other() -> None:
    others = [f"clients/test_{number}.py" for number in range(8)]
    names = ["unit/test_order.py", *others, SWARMS[1], SWARMS[0]]
    assert arranged(names) == [SWARMS[0], *others[:4], SWARMS[1], *others[4:], "unit/test_order.py"]


def test_none_is_lost_and_none_comes_twice() -> None:
    elsewhere = "../elsewhere/test_it.py"
    for names in ([], list(SWARMS), [*SWARMS, *LONGEST[:1]], [*LONGEST, *SWARMS, *LONGEST, elsewhere]):
        assert sorted(arranged(names)) == sorted(set(names))


def test_the_longest_exist() -> None:
    assert [name for name in LONGEST + SWARMS if not (TESTS / name).is_file()] == []
    assert not set(LONGEST) & set(SWARMS)
