"""A layer store for tests, and tars made in memory to put into it."""

import io
import os
import tarfile
from pathlib import Path

from husk.builder.store.diffs import DiffStore
from husk.storage.blobs import BlobStore
from husk.storage.layers.ingest import Unpacked
from husk.storage.layers.store import Layer, LayerStore
from husk.storage.state.store import StateStore
from husk.storage.workers.nursery import Nursery

GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"

Member = tuple[tarfile.TarInfo, bytes]


class Store:
    """A layer store with what it stands on, which can be opened again as after a crash."""

    def __init__(self, root: Path, max_layer_size: int = 0) -> None:
        self.root = root
        self.max_layer_size = max_layer_size

    async def open(self, power_held: bool = True) -> None:
        self.state = StateStore.open(self.root / "state.db")
        self.blobs = BlobStore.open(self.root / "blobs")
        self.nursery = Nursery()
        self.layers = await LayerStore.open(
            self.root / "layers", self.state, self.blobs, self.nursery, self.max_layer_size
        )
        self.diffs = await DiffStore.open(self.layers, self.state, self.blobs, self.nursery, power_held=power_held)

    async def close(self) -> None:
        await self.diffs.close()
        await self.layers.close()
        self.nursery.close()
        self.state.close()

    async def die(self) -> None:
        """As `close`, without what only a clean end does."""
        self.layers.directories.writeback._waiting.clear()
        await self.close()

    async def emptied(self) -> None:
        """Wait until nothing is left to delete."""
        await self.layers._tasks.join()
        await self.layers.emptied()

    async def unpack(self, blob: bytes, digest: str | None = None, piece: int = 1 << 20) -> Unpacked:
        async with self.layers.ingest(digest, GZIP) as ingest:
            for at in range(0, len(blob), piece):
                await ingest.write(blob[at : at + piece])
            return await ingest.finish()

    async def add(self, blob: bytes, parent: str = "") -> Layer:
        return await self.layers.commit(await self.unpack(blob), parent)

    async def tree(self, blob: bytes) -> Path:
        """The directory of a layer made of `blob`."""
        return self.layers.path(await self.add(blob))

    def directories(self) -> list[str]:
        return sorted(os.listdir(self.root / "layers" / "l"))

    def nothing_left(self) -> bool:
        """Tell if there is no directory, no blob and no half-written file."""
        places = ("layers/l", "layers/w", "layers/trash", "blobs/ingest", "blobs/sha256")
        return not any(os.listdir(self.root / place) for place in places)


def member(name: str, data: bytes = b"", **fields: object) -> Member:
    """An entry of a tar; `fields` are those of TarInfo, `xattrs` its extended attributes."""
    info = tarfile.TarInfo(name)
    xattrs = fields.pop("xattrs", {})
    assert isinstance(xattrs, dict)
    info.pax_headers = {
        f"SCHILY.xattr.{key}": value.decode("utf-8", "surrogateescape") for key, value in xattrs.items()
    }
    for key, value in fields.items():
        setattr(info, key, value)
    if info.isreg():
        info.size = len(data)
    return info, data


def directory(name: str, mode: int = 0o755, **fields: object) -> Member:
    return member(name, b"", type=tarfile.DIRTYPE, mode=mode, **fields)


def symlink(name: str, target: str) -> Member:
    return member(name, type=tarfile.SYMTYPE, linkname=target)


def hard_link(name: str, target: str) -> Member:
    return member(name, type=tarfile.LNKTYPE, linkname=target)


def make_tar(*members: Member, format: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()
