"""A key that only another key gives back."""

import pytest

from husk.errors import SystemFault
from husk.storage.secrets import locks

KEY, FIRST, SECOND = (bytes([number]) * 32 for number in range(3))


def test_each_of_its_keys_opens_it_and_no_other():
    content = locks.make(KEY, [FIRST, SECOND])
    assert locks.open_with(content, FIRST) == locks.open_with(content, SECOND) == KEY
    assert locks.open_with(content, b"x" * 32) is None
    assert locks.has_others(content) and not locks.has_others(locks.make(KEY, [FIRST]))
    assert KEY not in content and FIRST not in content


def test_whoever_has_opened_it_learns_the_newest_key():
    content = locks.make(KEY, [SECOND, FIRST])
    assert locks.newest_key(content, KEY) == SECOND
    with pytest.raises(SystemFault, match="does not belong"):
        locks.newest_key(content, b"x" * 32)


def test_a_damaged_file_is_named():
    with pytest.raises(SystemFault, match="damaged"):
        locks.open_with(b"{", FIRST)
