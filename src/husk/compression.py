"""The compression of a stream, told by its first bytes; this is the only place that knows them.

Who decompresses is elsewhere: `storage/tar/inflate` for archives that a client sends, `storage/tar/decompress` for
layers, in a worker.
"""

# So many bytes at the beginning are enough to tell.
LONGEST_MAGIC = 6

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
# Skippable frames, with which zstd:chunked layers may begin, have sixteen magic numbers: 0x184D2A5?.
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"
_BZIP2 = b"BZh"
_XZ = b"\xfd7zXZ\0"


def compression_of(head: bytes) -> str:
    """`gzip`, `zstd`, `xz`, `bzip2`, or "" for what begins like none of them."""
    if head.startswith(_GZIP):
        return "gzip"
    if head.startswith(_ZSTD) or head[1:4] == _ZSTD_SKIPPABLE:
        return "zstd"
    if head.startswith(_XZ):
        return "xz"
    return "bzip2" if head.startswith(_BZIP2) else ""
