"""The store of content that has a digest: one directory, each blob in a file that is named after its digest.

A blob is complete or absent: it is written below `ingest/` and appears under its digest by one rename. Half-written
files of a daemon that was killed are removed at the next start. The store does not know who uses a blob; its users
remove theirs, and `sweep` removes what a killed daemon had not yet given to anyone. Blobs are on the disk after
`settle`, which whoever names one in a record calls before.
"""

import asyncio
import contextlib
import hashlib
import itertools
import os
from collections.abc import Collection
from concurrent.futures import Future
from pathlib import Path
from typing import Self

from husk.aio.thread_pool import ThreadPool
from husk.errors import InvalidParameter, NotFound
from husk.kernel.disk import sync_directory, sync_file
from husk.kernel.trees import discard_tree
from husk.storage.durable import Flusher
from husk.storage.lost import put_aside
from husk.text.patterns import pattern

_DIGEST = pattern(r"sha256:[0-9a-f]{64}")


def validate_digest(digest: str) -> str:
    """Return `digest` if it may become a file's name, else raise InvalidParameter."""
    if _DIGEST.fullmatch(digest) is None:
        raise InvalidParameter(f"invalid digest {digest!r}: it must be sha256: and 64 lower-case hexadecimal digits")
    return digest


class BlobStore:
    """Blobs below `root/sha256`; half-written ones below `root/ingest`."""

    def __init__(self, root: Path) -> None:
        self._content = root / "sha256"
        self._ingest = root / "ingest"
        self._sequence = itertools.count()
        self._unsynced: set[str] = set()
        self._flusher = Flusher(self._sync, "sync the blobs")
        # Apart from all others: it may last as long as the disk is slow.
        self._thread = ThreadPool(1, "sync the names of blobs")
        self._ahead: Future[None] | None = None

    @classmethod
    def open(cls, root: Path) -> Self:
        """Make the directories and forget what was half written."""
        store = cls(root)
        store._ingest.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The directory itself stays: on a full disk there would be no room for another.
        for name in os.listdir(store._ingest):
            if not discard_tree(store._ingest / name):
                put_aside(root.parent, store._ingest / name, "it was half written and cannot be deleted")
        store._content.mkdir(exist_ok=True, mode=0o700)
        return store

    @property
    def directory(self) -> Path:
        """The directory of all blobs, whose files are named by the digits of their digests."""
        return self._content

    def path(self, digest: str) -> Path:
        return self._content / validate_digest(digest).removeprefix("sha256:")

    def has(self, digest: str) -> bool:
        return self.path(digest).exists()

    def size(self, digest: str) -> int:
        try:
            return self.path(digest).stat().st_size
        except FileNotFoundError:
            raise NotFound(f"content digest {digest}: not found") from None

    def all(self) -> set[str]:
        """The digests of all blobs."""
        return {digest for name in os.listdir(self._content) if _DIGEST.fullmatch(digest := f"sha256:{name}")}

    def usage(self) -> tuple[int, int]:
        """Return the number of blobs, and the sum of their bytes."""
        sizes = []
        with os.scandir(self._content) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # it goes meanwhile
                    sizes.append(entry.stat().st_size)
        return len(sizes), sum(sizes)

    async def read(self, digest: str) -> bytes:
        """The whole blob; for manifests and configurations, which are small."""
        try:
            return await asyncio.to_thread(self.path(digest).read_bytes)
        except FileNotFoundError:
            raise NotFound(f"content digest {digest}: not found") from None

    async def put(self, data: bytes) -> str:
        """Store `data` and return its digest."""
        (digest,) = await self.put_all(data)
        return digest

    async def put_all(self, *documents: bytes) -> list[str]:
        """Store several and return their digests."""
        return await asyncio.to_thread(lambda: [self._put(data) for data in documents])

    async def remove(self, digest: str) -> None:
        """Remove a blob, which nobody finds from the call on; nothing happens when there is none."""
        condemned = self.temporary()
        with contextlib.suppress(FileNotFoundError):
            os.rename(self.path(digest), condemned)
            await asyncio.to_thread(condemned.unlink)

    async def sweep(self, keep: Collection[str]) -> list[str]:
        """Remove all blobs that are not in `keep`; for the start of the daemon, before anything is pulled."""
        unused = sorted(self.all().difference(keep))
        for digest in unused:
            await self.remove(digest)
        await asyncio.to_thread(self._remove_strays)
        return unused

    def temporary(self) -> Path:
        """A fresh name below `ingest/` for a blob that somebody else is going to write."""
        return self._ingest / str(next(self._sequence))

    def make_temporary(self) -> Path:
        """An empty file with such a name. Whoever writes it does not make it: a worker of a daemon that was killed
        finds none, once the next daemon has tidied up."""
        temporary = self.temporary()
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        return temporary

    def lend(self, digest: str) -> Path:
        """Another name of a blob, below `ingest/`, to be adopted or unlinked: it stays whoever removes the blob."""
        temporary = self.temporary()
        try:
            os.link(self.path(digest), temporary)
        except FileNotFoundError:
            raise NotFound(f"content digest {digest}: not found") from None
        return temporary

    def adopt(self, temporary: Path, digest: str) -> None:
        """Make a file that was written at `temporary` visible as the blob `digest`."""
        os.replace(temporary, self.path(digest))
        # Between two names of one file that did nothing.
        temporary.unlink(missing_ok=True)
        self._unsynced.add(digest)
        self._flusher.wrote()

    async def settle(self) -> None:
        """Return when all blobs are on the disk."""
        await self._flusher.settle()

    def settle_ahead(self) -> None:
        """Let the file system write down now what it has noted so far, so that a `settle` to come waits less.

        Only the directory is synced: a fault of a blob's data must be told to nobody but those who `settle`, for the
        kernel tells it once.
        """
        if self._ahead is None or self._ahead.done():
            self._ahead = self._thread.submit(self._sync_names)

    def close(self) -> None:
        self._flusher.close()
        self._thread.shutdown()

    def _sync(self) -> None:
        """Each by itself and not the whole file system: what else was written there may wait (`LayerStore`)."""
        synced: list[str] = []
        try:
            while self._unsynced:
                synced.append(self._unsynced.pop())
                with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile
                    sync_file(self.path(synced[-1]))
            sync_directory(self._content)
        except BaseException:
            self._unsynced.update(synced)
            raise

    def _sync_names(self) -> None:
        with contextlib.suppress(OSError):
            sync_directory(self._content)

    def _remove_strays(self) -> None:
        """Remove files and directories that somebody else has put between our blobs."""
        for name in os.listdir(self._content):
            if _DIGEST.fullmatch(f"sha256:{name}") is None:
                discard_tree(self._content / name)

    def _holds(self, digest: str, data: bytes) -> bool:
        path = self.path(digest)
        try:
            return path.stat().st_size == len(data) and path.read_bytes() == data
        except OSError:
            return False

    def _put(self, data: bytes) -> str:
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        # One that is there may have been damaged since it came.
        if not self._holds(digest, data):
            temporary = self.temporary()
            try:
                temporary.write_bytes(data)
                self.adopt(temporary, digest)
            finally:
                temporary.unlink(missing_ok=True)
        return digest
