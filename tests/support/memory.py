"""Directories in memory for tests that may mount nothing: plain ones."""

import shutil
from pathlib import Path


class NoMounts:
    """In place of `husk.storage.secrets.memory`."""

    def __init__(self) -> None:
        self.fails: OSError | None = None

    def make(self, place: Path) -> None:
        if self.fails is not None:
            raise self.fails
        place.mkdir(parents=True, exist_ok=True)

    def drop(self, place: Path) -> None:
        """As the end of the host does, too."""
        shutil.rmtree(place, ignore_errors=True)
