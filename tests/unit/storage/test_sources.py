"""Blobs on their way out: from any offset, and compressed to the same bytes every time."""

import gzip
import hashlib
from pathlib import Path

import pytest

from husk.storage.sources import FileSource, GzipSource

DATA = b"".join(b"%d " % number for number in range(400_000))


@pytest.fixture
def blob(tmp_path: Path) -> Path:
    (tmp_path / "blob").write_bytes(DATA)
    return tmp_path / "blob"


async def read(source: FileSource | GzipSource, offset: int = 0) -> bytes:
    return b"".join([piece async for piece in source.read(offset)])


async def test_a_file_from_any_offset(blob: Path) -> None:
    source = FileSource(blob, "sha256:0", len(DATA))
    for offset in (0, 1, 1 << 20, len(DATA)):
        assert await read(source, offset) == DATA[offset:]


async def test_compressing_is_repeatable_and_tells_its_digest(blob: Path) -> None:
    source = GzipSource(blob)
    assert (source.size, source.digest) == (-1, "")
    packed = await read(source)
    assert gzip.decompress(packed) == DATA
    assert (source.size, source.digest) == (len(packed), "sha256:" + hashlib.sha256(packed).hexdigest())
    again = GzipSource(blob)
    for offset in (0, 5, len(packed) // 2, len(packed) - 1):
        assert await read(again, offset) == packed[offset:]


async def test_an_empty_blob(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert gzip.decompress(await read(GzipSource(tmp_path / "empty"))) == b""
