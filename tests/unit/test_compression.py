"""Each kind of compression is told by its first bytes, however few of them there are."""

import bz2
import gzip
import lzma

import pytest
import zstandard

from husk.compression import LONGEST_MAGIC, compression_of

PACKED = {
    "gzip": gzip.compress(b"x"),
    "zstd": zstandard.compress(b"x"),
    "xz": lzma.compress(b"x"),
    "bzip2": bz2.compress(b"x"),
    "": b"etc/passwd",
}


@pytest.mark.parametrize("kind", PACKED)
def test_the_first_bytes_tell(kind: str) -> None:
    head = PACKED[kind]
    told = [compression_of(head[:count]) for count in range(len(head) + 1)]
    assert set(told[LONGEST_MAGIC:]) == {kind}
    assert set(told[:LONGEST_MAGIC]) <= {"", kind}


def test_zstd_may_begin_with_a_frame_to_skip() -> None:
    for number in range(0x50, 0x60):
        assert compression_of(bytes([number]) + b"\x2a\x4d\x18") == "zstd"
