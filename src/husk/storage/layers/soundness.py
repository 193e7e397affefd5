"""Checks that a layer is still what its record says, made before it is used once more. All calls block.

A disk that lost what was never written to it shows files that are short or gone, so that sizes tell; the blob's digest
tells whatever else may happen to it. Files of the right size with other bytes are found by `husk doctor --check-store
--deep` alone, which unpacks the blob again.
"""

import hashlib
from pathlib import Path

from husk.kernel.trees import tree_size
from husk.storage.sources import PIECE


def digest_of_file(path: Path) -> str:
    """Computed anew, in constant memory."""
    hashed = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        buffer = memoryview(bytearray(PIECE))
        while count := file.readinto(buffer):
            hashed.update(buffer[:count])
    return "sha256:" + hashed.hexdigest()


def blob_fault(path: Path, digest: str, size: int) -> str:
    """Describe the fault of a blob; empty when it has none."""
    try:
        found = path.stat().st_size
        if found != size:
            return f"its blob has {found} bytes instead of {size}"
        return "" if digest_of_file(path) == digest else "its blob has another digest"
    except OSError as error:
        return f"its blob cannot be read: {error.strerror}"


def tree_fault(directory: Path, size: int) -> str:
    """Describe the fault of a layer's files; empty when none is seen."""
    if not directory.is_dir():
        return "its directory is missing"
    try:
        found = tree_size(directory)
    except OSError as error:
        return f"its files cannot be read: {error.strerror}"
    return "" if found == size else f"its files have {found} bytes instead of {size}"
