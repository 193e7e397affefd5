"""The marks by which layers and overlay directories say the same thing: whiteouts, and overlayfs' own marks.

In a layer's tar the file `.wh.x` says that `x` of the layers below is gone, and `.wh..wh..opq` that a directory hides
all that the layers below have in it. For overlayfs the first is a character device 0:0 named `x`, the second the
extended attribute `trusted.overlay.opaque` of the directory.
"""

import os
import stat

WHITEOUT_PREFIX = b".wh."
# Names that aufs kept for itself; only the opaque mark among them has a meaning in a layer.
WHITEOUT_META_PREFIX = b".wh..wh."
OPAQUE_MARK = b".wh..wh..opq"

_OVERLAY_XATTRS = ("trusted.overlay.", "user.overlay.")


def whiteout_target(name: bytes) -> bytes | None:
    """The name that the whiteout file `name` removes; None when `name` is no whiteout of a single name."""
    if not name.startswith(WHITEOUT_PREFIX) or name.startswith(WHITEOUT_META_PREFIX):
        return None
    return name[len(WHITEOUT_PREFIX) :]


def whiteout_name(name: bytes) -> bytes:
    """The whiteout file that removes `name`."""
    return WHITEOUT_PREFIX + name


def is_whiteout(status: os.stat_result) -> bool:
    """Tell if this file is overlayfs' mark for a removed name."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def is_overlay_xattr(name: str) -> bool:
    """Tell if this extended attribute belongs to overlayfs, so that no archive may bring or tell it."""
    return name.startswith(_OVERLAY_XATTRS)
