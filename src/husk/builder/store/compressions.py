"""The compressions of layers, by the names that clients have for them."""

import msgspec

PLAIN, GZIP, ZSTD = "uncompressed", "gzip", "zstd"


class Compression(msgspec.Struct, frozen=True):
    """`level` is the compressor's own, None for what is fast and good enough."""

    kind: str = GZIP
    level: int | None = None
