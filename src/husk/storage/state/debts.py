"""Changes that have happened and are not in the store yet, for want of room there: kept for the next daemon to find.

Their file, the page, is beside the pids and sockets of containers, as a rule on a file system that goes when the host
does. It names the mark that the store had when it was written. A transaction that pays debts gives the store another
mark, so that a page which is still there afterwards (the daemon was killed before it removed it, or could not) is known
as paid: what it says may be older than what the store has.
"""

import contextlib
import logging
import os
import stat
from pathlib import Path
from typing import NamedTuple

import msgspec

from husk.errors import SystemFault
from husk.storage.state.schema import SCHEMA
from husk.text.documents import MalformedDocument, decode

log = logging.getLogger(__name__)

# The schema of documents on pages that do not tell it: those of the releases before it was told.
_UNTOLD = 2
# Bytes of a page; what is more than that is in memory alone.
LARGEST = 256 << 20


class OwedRecord(NamedTuple):
    """A record to write in the form of a schema; without a body it is gone."""

    kind: str
    key: str
    body: bytes | None
    schema: int = _UNTOLD


class _Page(msgspec.Struct):
    store: str
    changes: list[OwedRecord]
    follows: str = ""


class Debts:
    """The page of one store's debts; without a path they are in memory alone."""

    def __init__(self, path: Path | None, store: Path) -> None:
        self._path = path
        self._store = str(store)
        self._told = False

    def read(self, mark: str) -> list[OwedRecord]:
        """List what a store with this mark owes. SystemFault when a later version has written it."""
        if self._path is None:
            return []
        try:
            page = decode(_content(self._path), _Page, largest=LARGEST)
        except FileNotFoundError:
            return []
        except (OSError, MalformedDocument) as error:
            log.error("%s cannot be read, so what it notes is lost: %s", self._path, error)
            return []
        # A directory may have served a daemon with another data root.
        if page.store != self._store:
            return []
        if page.follows != mark:
            log.info("%s is left from before: what it notes is in the store", self._path)
            self.write([], mark)
            return []
        latest = max((change.schema for change in page.changes), default=SCHEMA)
        if latest > SCHEMA:
            raise SystemFault(
                f"{self._path} was written by a later version of Husk (schema {latest}; this one knows {SCHEMA}) and "
                f"has {len(page.changes)} changes that are not in the store yet: start that version, or delete the "
                "file, and the changes are lost"
            )
        return page.changes

    def write(self, changes: list[OwedRecord], mark: str) -> bool:
        """Note what a store with this mark owes; False where that cannot be done, and they are in memory alone."""
        if self._path is None:
            return True
        if not changes:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
            return True
        fresh = self._path.with_name(self._path.name + ".new")
        try:
            content = msgspec.json.encode(_Page(self._store, changes, mark))
            if len(content) > LARGEST:
                raise OSError(f"it would have more than {LARGEST} bytes")
            self._path.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
            # Whatever lies there is not written into: it may be a pipe, or a link.
            fresh.unlink(missing_ok=True)
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.replace(fresh, self._path)
        except OSError as error:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
            if not self._told:
                log.error("%s cannot be written, and what it would note is in memory alone: %s", self._path, error)
            self._told = True
            return False
        self._told = False
        return True


def _content(path: Path) -> bytes:
    """The bytes of a regular file: a pipe would be waited for, and a link may lead to anything."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is no regular file")
        return file.read(LARGEST + 1)
