"""Modes that `chmod` makes of a mode."""

import stat

import pytest

from husk.builder.store.workers.copy_look import apply_symbolic_mode

FILE, DIRECTORY = stat.S_IFREG, stat.S_IFDIR


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("u+x", 0o644, 0o744),
        ("+x", 0o644, 0o755),
        ("a-w", 0o666, 0o444),
        ("go=", 0o777, 0o700),
        ("go=u-w", 0o640, 0o644),
        ("g=u", 0o2640, 0o2660),
        ("u=rwX,go=rX", 0o600, 0o644),
        ("u=rwX,go=rX", 0o700, 0o755),
        ("u+s", 0o755, 0o4755),
        ("ug+s", 0o755, 0o6755),
        ("o+s", 0o755, 0o755),
        ("+t", 0o755, 0o1755),
        ("a=r", 0o1777, 0o1444),
        ("=rw", 0o4755, 0o666),
        ("o+u", 0o740, 0o747),
        ("u-x+w", 0o555, 0o655),
        ("g+w,o-r", 0o644, 0o660),
    ],
)
def test_modes_of_files(text: str, before: int, after: int):
    assert oct(apply_symbolic_mode(text, FILE | before)) == oct(after)


def test_a_directory_can_be_entered_by_a_large_x():
    assert apply_symbolic_mode("a+X", DIRECTORY | 0o600) == 0o711
    assert apply_symbolic_mode("a+X", FILE | 0o600) == 0o600
