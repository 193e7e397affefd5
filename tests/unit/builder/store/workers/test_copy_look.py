"""The look of copies."""

import os
import stat

import pytest

from husk.builder.store.sync_table import Brief
from husk.builder.store.workers.copy_look import CopyLook

FILE = Brief(stat.S_IFREG | 0o640, 7, 8, 5, 1_000_000_007)
STATUS = os.stat_result((FILE.mode, 0, 0, 1, 7, 8, 5, 1, 1, 1))


@pytest.mark.parametrize(
    ("look", "mode", "owner"),
    [
        (CopyLook(), 0o640, (7, 8)),
        (CopyLook(owner=(1, 2)), 0o640, (1, 2)),
        (CopyLook(mode=0o4755), 0o4755, (7, 8)),
        (CopyLook(symbolic_mode="go+w"), 0o662, (7, 8)),
    ],
)
def test_owner_and_mode(look: CopyLook, mode: int, owner: tuple[int, int]):
    assert (look.mode_of(STATUS), look.owner_of(STATUS)) == (mode, owner)
    assert look.seen(FILE) == Brief(stat.S_IFREG | mode, *owner, 5, FILE.mtime)
    assert look.is_same is (mode == 0o640 and owner == (7, 8))


def test_links_keep_their_mode():
    link = FILE._replace(mode=stat.S_IFLNK | 0o777)
    assert CopyLook(owner=(1, 2), mode=0o600).seen(link) == Brief(link.mode, 1, 2, 5, FILE.mtime)


def test_one_time_for_all():
    assert CopyLook(time=3).times_of(STATUS) == (3, 3)
    assert CopyLook(time=3).seen(FILE).mtime == 3


def test_a_key_stands_for_all_that_makes_a_difference():
    looks = [
        CopyLook(),
        CopyLook(owner=(1, 2)),
        CopyLook(owner=(2, 1)),
        CopyLook(mode=1),
        CopyLook(symbolic_mode="a+x"),
        CopyLook(time=1),
    ]
    keys = [look.key(target) for look in looks for target in ("a", "b", os.fsdecode(b"\xff"))]
    assert len(set(keys)) == len(keys)
    assert CopyLook(owner=(1, 2)).key("a") == CopyLook(owner=(1, 2)).key("a")
