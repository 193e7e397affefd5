"""Records of builds that have ended: for each build a directory with a record and blobs. All calls block.

A directory comes into being at once, by a rename, and so does each file of it: what a daemon that was killed has left
half made is thrown away by the next. None of it is synced: who loses power loses the last builds' logs, and no more.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from husk.kernel.trees import discard_tree

RECORD = "record"
# What is larger is not ours.
_LARGEST = 64 << 20
_NEW = "new-"


class BuildRecords:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def load(self) -> list[bytes]:
        """All records, those that were written first at the beginning. What is not one is removed."""
        found: list[tuple[int, bytes]] = []
        for place in self._directory.iterdir() if self._directory.exists() else ():
            record = None if place.name.startswith(_NEW) else self._content(place / RECORD)
            if record is None:
                discard_tree(place)
            else:
                found.append((place.stat().st_mtime_ns, record))
        return [record for _, record in sorted(found)]

    def save(self, name: str, files: Mapping[str, bytes]) -> None:
        """Keep files of a build, with or beside those that are kept already."""
        place = self._directory / name
        if place.exists():
            for file, data in files.items():
                self._replace(place / file, data)
            return
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self._directory / f"{_NEW}{name}"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        for file, data in files.items():
            (new / file).write_bytes(data)
        new.rename(place)

    def read(self, name: str, file: str) -> bytes | None:
        return self._content(self._directory / name / file)

    def remove(self, name: str) -> None:
        place = self._directory / name
        if place.exists():
            discard_tree(place)

    def _replace(self, path: Path, data: bytes) -> None:
        new = path.with_name(f"{_NEW}{path.name}")
        new.write_bytes(data)
        os.replace(new, path)

    def _content(self, path: Path) -> bytes | None:
        try:
            with path.open("rb") as file:
                data = file.read(_LARGEST + 1)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        return data if len(data) <= _LARGEST else None
