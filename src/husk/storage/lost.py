"""Things in a data root that can neither be used nor deleted: they are put aside, below `lost/`.

Nothing that is found at a start may keep the daemon from starting. What lies in `lost/` is nobody's any more: `husk
doctor` tells of it, and whoever has looked at it may delete it.
"""

import logging
import os
import time
from pathlib import Path

from husk.kernel.trees import remove_tree

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


def put_record_aside(data_root: Path, kind: str, key: str, body: bytes, directory: Path | None = None) -> None:
    """Keep a record that cannot be read, and the directory of what it was about."""
    place = data_root / DIRECTORY
    place.mkdir(mode=0o700, exist_ok=True)
    (place / f"{kind}-{key}.json").write_bytes(body)
    if directory is not None and directory.is_dir():
        os.rename(directory, place / f"{kind}-{key}-{time.time_ns()}")


def remove_leftover(path: Path) -> None:
    """Delete what is known to be nobody's."""
    remove_tree(path)


def lost(data_root: Path) -> list[str]:
    """List the names of things that were put aside."""
    try:
        return sorted(os.listdir(data_root / DIRECTORY))
    except OSError:
        return []


def names_in(directory: Path) -> list[str]:
    """List the names in a directory of the data root; none where there is no directory."""
    try:
        return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []
