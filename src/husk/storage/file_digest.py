"""What one file looks like, as a digest: its kind and mode, owner, group, device, content and attributes count for it,
its name and times do not.

Contents are hashed with BLAKE2b, which takes half of the time of SHA-256 where the processor has no instructions for
that; nobody but the cache of builds sees these digests.
"""

import hashlib
from collections.abc import Sequence

import msgspec

DIGEST_SIZE = 32

_encoder = msgspec.msgpack.Encoder()


def content_hash(data: bytes | memoryview = b"") -> "hashlib.blake2b":
    """What the content of a file is hashed with."""
    return hashlib.blake2b(data, digest_size=DIGEST_SIZE, usedforsecurity=False)


def look_digest(
    mode: int, uid: int, gid: int, device: int, content: bytes, xattrs: Sequence[tuple[str, bytes]]
) -> bytes:
    """`content` is the digest of a plain file's content, the target of a link, and empty for all else. Attributes are
    ordered by name."""
    return hashlib.sha256(_encoder.encode((mode, uid, gid, device, content, xattrs))).digest()
