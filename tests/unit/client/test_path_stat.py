import base64
import json
import stat

import pytest

from husk.client.path_stat import path_stat
from husk.errors import Unavailable


def told(mode, **more):
    document = {"name": "x", "size": 1, "mode": mode, "mtime": "2026-01-02T03:04:05Z", "linkTarget": "", **more}
    return path_stat(base64.b64encode(json.dumps(document).encode()).decode())


@pytest.mark.parametrize(
    ("go", "mode"),
    [
        (0o644, stat.S_IFREG | 0o644),
        (1 << 31 | 0o755, stat.S_IFDIR | 0o755),
        (1 << 31 | 1 << 20 | 0o777, stat.S_IFDIR | stat.S_ISVTX | 0o777),
        (1 << 23 | 1 << 22 | 0o755, stat.S_IFREG | stat.S_ISUID | stat.S_ISGID | 0o755),
        (1 << 26 | 0o660, stat.S_IFBLK | 0o660),
        (1 << 26 | 1 << 21 | 0o660, stat.S_IFCHR | 0o660),
        (1 << 25 | 0o600, stat.S_IFIFO | 0o600),
        (1 << 24 | 0o600, stat.S_IFSOCK | 0o600),
    ],
)
def test_modes(go, mode):
    assert told(go).mode == mode


def test_kinds():
    link = told(1 << 27 | 0o777, linkTarget="/there")
    assert (link.is_symlink, link.is_file, link.is_dir, link.link_target) == (True, False, False, "/there")
    assert told(1 << 31).is_dir
    assert told(0).is_file


@pytest.mark.parametrize("header", ["", "!!", base64.b64encode(b"[]").decode()])
def test_what_cannot_be_read(header):
    with pytest.raises(Unavailable, match="cannot be read"):
        path_stat(header)
