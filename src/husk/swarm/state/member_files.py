"""The directory of a member of etcd on this host: what the member is given to begin with."""

import os
from collections.abc import Mapping
from pathlib import Path

from husk.kernel.disk import sync_directory

# The member's key.
KEY = "member.key"


def install(contents: Mapping[Path, bytes]) -> None:
    """Write files that only root may read, and the directories that they are in. On the disk when this returns."""
    for path, content in contents.items():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)


def replace(path: Path, content: bytes) -> None:
    """Write such a file in one step: whoever reads it meanwhile has all of the old one or of the new one."""
    fresh = path.with_name(path.name + ".new")
    install({fresh: content})
    fresh.rename(path)
    sync_directory(path.parent)


def read(path: Path) -> bytes:
    """Empty where there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def is_there(directory: Path) -> bool:
    """Return True if this host has, or had, a member in that directory."""
    return directory.exists()
