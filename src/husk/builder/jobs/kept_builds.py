"""Builds that have ended, as they are kept beyond the daemon: records and blobs that the edge has made of them."""

import asyncio
import hashlib
import logging
from collections.abc import Mapping

from husk.builder.store.build_records import BuildRecords

log = logging.getLogger(__name__)


class KeptBuilds:
    def __init__(self, records: BuildRecords) -> None:
        self._records = records

    async def load(self) -> list[bytes]:
        """All records, the oldest first."""
        try:
            return await asyncio.to_thread(self._records.load)
        except OSError as error:
            log.error("records of builds cannot be read: %s", error)
            return []

    async def save(self, ref: str, files: Mapping[str, bytes]) -> None:
        """Keep files of a build. What cannot be kept is lost, and no build fails for it."""
        try:
            await asyncio.to_thread(self._records.save, _name(ref), files)
        except OSError as error:
            log.error("the record of build %s cannot be kept: %s", ref, error)

    async def read(self, ref: str, file: str) -> bytes | None:
        try:
            return await asyncio.to_thread(self._records.read, _name(ref), file)
        except OSError as error:
            log.error("the record of build %s cannot be read: %s", ref, error)
            return None

    async def remove(self, ref: str) -> None:
        try:
            await asyncio.to_thread(self._records.remove, _name(ref))
        except OSError as error:
            log.error("the record of build %s cannot be removed: %s", ref, error)


def _name(ref: str) -> str:
    """A client chooses the id of a build, and it may be anything."""
    return hashlib.sha256(ref.encode("utf-8", "surrogateescape")).hexdigest()[:40]
