"""The status of a file in Go's numbers."""

import stat

import pytest

from husk.api.views.container_files import go_mode, path_stat
from husk.storage.workers.answers import FileStatus


@pytest.mark.parametrize(
    ("kernel", "go"),
    [
        (stat.S_IFREG | 0o644, 420),
        (stat.S_IFDIR | 0o755, 2147484141),
        (stat.S_IFDIR | 0o1777, 2148532735),
        (stat.S_IFLNK | 0o777, 134218239),
        (stat.S_IFREG | 0o6755, 1 << 23 | 1 << 22 | 0o755),
        (stat.S_IFCHR | 0o600, 1 << 26 | 1 << 21 | 0o600),
        (stat.S_IFBLK | 0o600, 1 << 26 | 0o600),
        (stat.S_IFIFO | 0o600, 1 << 25 | 0o600),
        (stat.S_IFSOCK | 0o600, 1 << 24 | 0o600),
    ],
)
def test_mode(kernel: int, go: int):
    assert go_mode(kernel) == go


@pytest.mark.parametrize(
    ("ns", "text"),
    [(1_000_000 * 10**9, "1970-01-12T13:46:40Z"), (10**9 + 5 * 10**8, "1970-01-01T00:00:01.5Z")],
)
def test_time_without_zeros_at_its_end(ns: int, text: str):
    status = FileStatus(name="x", size=1, mode=stat.S_IFREG, mtime_ns=ns, link="")
    assert path_stat(status).mtime == text
