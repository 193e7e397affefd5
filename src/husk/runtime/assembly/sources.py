"""Paths of the host that are bound into a container: their presence, propagation, and the flags of their mounts."""

import os
from pathlib import Path

from husk.errors import InvalidParameter, SystemFault
from husk.kernel.mount import shared_of

_FLAGS = {"ro": os.ST_RDONLY, "nosuid": os.ST_NOSUID, "nodev": os.ST_NODEV, "noexec": os.ST_NOEXEC}


def exists(path: str) -> bool:
    """Return True if something is there when links are followed."""
    return os.path.exists(path)


def make_ready(path: str, *, makes: bool, propagation: str) -> None:
    """Before a start: a missing source is made where the client wants that, and else refused."""
    if not os.path.lexists(path):
        if not makes:
            raise missing(path)
        _make(path)
    _check_propagation(path, propagation.removeprefix("r"))


def missing(path: str) -> InvalidParameter:
    return InvalidParameter(f'invalid mount config for type "bind": bind source path does not exist: {path}')


def is_shared(path: str) -> bool:
    """Return True if mounts below the path show up elsewhere, or come from elsewhere."""
    return bool(shared_of(path)[1])


def flags(path: str) -> tuple[str, ...]:
    """List the flags that the path is mounted with (`ro`, `noexec`), after `file` if it is no directory. Or OSError."""
    present = os.statvfs(path).f_flag
    words = [] if os.path.isdir(path) else ["file"]
    return (*words, *(word for word, flag in _FLAGS.items() if present & flag))


def _make(path: str) -> None:
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SystemFault(f"error while creating mount source path '{path}': mkdir {path}: {reason}") from error


def _check_propagation(path: str, wanted: str) -> None:
    if wanted not in ("shared", "slave"):
        return
    place, tags = shared_of(path)
    if wanted == "shared" and "shared" not in tags:
        raise SystemFault(f"path {path} is mounted on {place} but it is not a shared mount")
    if not tags & {"shared", "master"}:
        raise SystemFault(f"path {path} is mounted on {place} but it is not a shared or slave mount")
