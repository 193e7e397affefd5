"""The files that `husk install` puts below a root, for tests of it and of `husk uninstall`."""

import shutil
from pathlib import Path

import pytest

NEEDS_GROUPADD = pytest.mark.skipif(shutil.which("groupadd") is None, reason="no groupadd here")
SERVICE, SOCKET = "etc/systemd/system/husk.service", "etc/systemd/system/husk.socket"


def everything(root: Path) -> dict[str, str]:
    """Return all files below a root, with their contents."""
    return {
        str(path.relative_to(root)): path.read_text() if path.is_file() else ""
        for path in sorted(root.rglob("*"))
        if not path.name.endswith("-")  # groupadd's copies of what was before
    }
