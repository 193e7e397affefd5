"""What becomes of something in a data root that can neither be used nor deleted? It is put aside, below `lost/`.

Nothing that is found at a start may keep the daemon from starting. What lies in `lost/` is nobody's any more: `husk
doctor` tells of it, and whoever has looked at it may delete it.
"""

import logging
import os
import time
from pathlib import Path

log = logging.getLogger(__name__)

DIRECTORY = "lost"


def put_aside(data_root: Path, path: Path, why: str) -> bool:
    """Move a file or directory of the data root out of the way; the log has where, or why that failed as well."""
    place = data_root / DIRECTORY / f"{path.parent.name}-{path.name}-{time.time_ns()}"
    try:
        place.parent.mkdir(mode=0o700, exist_ok=True)
        os.rename(path, place)
    except OSError as error:
        log.error("%s (%s) cannot be put aside either: %s", path, why, error)
        return False
    log.error("%s was put aside as %s: %s", path, place, why)
    return True


def lost(data_root: Path) -> list[str]:
    """What was put aside."""
    try:
        return sorted(os.listdir(data_root / DIRECTORY))
    except OSError:
        return []
