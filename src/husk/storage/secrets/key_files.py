"""Files of keys: written in one step, for root alone, and overwritten before they go. All functions block."""

import contextlib
import os
from pathlib import Path


def beside(path: Path) -> Path:
    return path.with_name(path.name + ".new")


def write(path: Path, content: bytes) -> None:
    """In one step, and on the disk when this returns."""
    fresh = beside(path)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        # All of it, or an error: a full disk may take a part.
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    fresh.rename(path)
    sync(path.parent)


def destroy(path: Path) -> None:
    """Overwrite before removing: where the disk writes in place, nothing of it is left. Safe to call twice."""
    with contextlib.suppress(FileNotFoundError):
        with path.open("r+b", buffering=0) as file:
            file.write(bytes(path.stat().st_size))
            os.fsync(file.fileno())
        path.unlink()
        sync(path.parent)


def sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
