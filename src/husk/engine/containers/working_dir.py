"""Where do a container's processes begin? In a directory that is made where its image has none."""

import errno
from pathlib import Path

from husk.errors import InvalidParameter, SystemFault
from husk.kernel import rooted


def make_working_dir(root: Path, path: str) -> None:
    """Make the directory that a container's processes begin in, where a mounted root has none."""
    try:
        rooted.make_directories(root, path)
    except OSError as error:
        if error.errno == errno.ENOTDIR:
            raise InvalidParameter(f"Cannot mkdir: {path} is not a directory") from None
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            raise InvalidParameter(f"Cannot mkdir: {path[:200]}: {(error.strerror or '').lower()}") from None
        raise SystemFault(f"Cannot mkdir: {path[:200]}: {(error.strerror or str(error)).lower()}") from error
