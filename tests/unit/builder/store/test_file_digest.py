"""Facts that count for a file's look; that disk and table agree is in the integration tests."""

import stat

from husk.builder.store import file_digest
from husk.builder.store.file_digest import DIGEST_SIZE, content_hash, look_digest


def test_everything_that_is_given_counts():
    plain, content, xattrs = stat.S_IFREG | 0o644, content_hash(b"x").digest(), [("user.a", b"1")]
    looks = [
        look_digest(plain, 1, 2, 0, content, xattrs),
        look_digest(plain & ~0o044, 1, 2, 0, content, xattrs),
        look_digest(plain, 2, 2, 0, content, xattrs),
        look_digest(plain, 1, 1, 0, content, xattrs),
        look_digest(plain, 1, 2, 5, content, xattrs),
        look_digest(plain, 1, 2, 0, content_hash(b"y").digest(), xattrs),
        look_digest(plain, 1, 2, 0, content, [("user.a", b"2")]),
    ]
    assert len(set(looks)) == len(looks)
    assert {len(look) for look in looks} == {DIGEST_SIZE}


def test_contents_are_hashed_in_pieces_or_at_once():
    pieces = content_hash()
    pieces.update(b"con")
    pieces.update(memoryview(b"tent"))
    assert pieces.digest() == content_hash(b"content").digest() == content_hash(memoryview(b"content")).digest()


def test_a_host_without_the_package_has_another_hash(monkeypatch):
    usual = content_hash(b"content").digest()
    monkeypatch.setattr(file_digest, "blake3", None)
    other = content_hash(b"content").digest()
    assert other != usual
    assert len(other) == len(usual) == DIGEST_SIZE
