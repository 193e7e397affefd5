"""Changes that have happened and are not in the store yet, for want of room there: kept for the next daemon to find.

Their file is beside the pids and sockets of containers, as a rule on a file system that goes when the host does.
"""

import contextlib
import logging
import os
from pathlib import Path

import msgspec

from husk.documents import Malformed, decode

log = logging.getLogger(__name__)

Document = tuple[str, str, bytes | None]
"""Kind, key and body; without a body the document is gone."""


class _Page(msgspec.Struct):
    store: str
    changes: list[Document]


class Debts:
    """The file of one store's debts; without a path they are in memory alone."""

    def __init__(self, path: Path | None, store: Path) -> None:
        self._path = path
        self._store = str(store)

    def read(self) -> list[Document]:
        if self._path is None:
            return []
        try:
            content = self._path.read_bytes()
            page = decode(content, _Page, largest=len(content))
        except FileNotFoundError:
            return []
        except (OSError, Malformed) as error:
            log.error("%s cannot be read: %s", self._path, error)
            return []
        # A directory may have served a daemon with another data root.
        return page.changes if page.store == self._store else []

    def write(self, changes: list[Document]) -> None:
        """Note them, as well as that can be done: where it cannot, they are in memory."""
        if self._path is None:
            return
        if not changes:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
            return
        fresh = self._path.with_name(self._path.name + ".new")
        try:
            self._path.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(_Page(self._store, changes)))
            os.replace(fresh, self._path)
        except OSError:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
