"""The short way to a header must lead to the same bytes as the long one, or digests would depend on the way."""

import stat
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.storage.tar.entry import BLOCK, TarError
from husk.storage.tar.header import TarMember, any_header, file_header, is_tar, parse_header, plain_header

KINDS = (
    tarfile.REGTYPE,
    tarfile.LNKTYPE,
    tarfile.SYMTYPE,
    tarfile.DIRTYPE,
    tarfile.FIFOTYPE,
    tarfile.CHRTYPE,
)
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=120)


def long_way(member: tarfile.TarInfo) -> bytes:
    return member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def ours(member: tarfile.TarInfo) -> TarMember:
    """The same in our words."""
    return TarMember(
        name=member.name,
        kind=member.type,
        mode=member.mode,
        uid=member.uid,
        gid=member.gid,
        size=member.size,
        mtime=int(member.mtime),
        link=member.linkname,
        major=member.devmajor,
        minor=member.devminor,
        pax=dict(member.pax_headers),
    )


@given(
    name=names,
    link=names,
    kind=st.sampled_from(KINDS),
    mode=st.integers(0, 0o7777),
    owner=st.integers(0, 2**32 - 1),
    size=st.integers(0, 2**40),
    mtime=st.integers(-(2**33), 2**36),
)
def test_a_plain_header_is_what_tarfile_writes(
    name: str, link: str, kind: bytes, mode: int, owner: int, size: int, mtime: int
) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.uid, member.gid = kind, mode, owner, owner // 3
    member.size, member.mtime = size, mtime
    if kind in (tarfile.LNKTYPE, tarfile.SYMTYPE):
        member.linkname = link
    assert plain_header(ours(member)) in (b"", long_way(member))
    assert any_header(ours(member)) == long_way(member)


@given(
    name=names,
    mode=st.integers(0, 0o7777),
    owner=st.integers(0, 2**32 - 1),
    size=st.integers(0, 2**40),
    mtime=st.integers(-(2**33), 2**36),
)
def test_the_header_of_a_file_is_what_tarfile_writes(name: str, mode: int, owner: int, size: int, mtime: int) -> None:
    member = tarfile.TarInfo(name)
    member.mode, member.uid, member.gid, member.size = mode, owner, owner // 3, size
    member.mtime = mtime
    assert file_header(name, stat.S_IFREG | mode, owner, owner // 3, size, mtime) in (b"", long_way(member))


def test_an_ordinary_file_has_a_plain_header():
    member = tarfile.TarInfo("usr/lib/file")
    member.size, member.mtime, member.uid = 123456, 1_700_000_000, 1000
    assert plain_header(ours(member)) == long_way(member)
    assert file_header("usr/lib/file", 0o644, 1000, 0, 123456, 1_700_000_000) == long_way(member)


def test_what_needs_an_extended_header_has_no_plain_one():
    for name in ("ü", "x" * 101):
        assert plain_header(TarMember(name)) == b""
    member = tarfile.TarInfo("x")
    member.pax_headers = {"SCHILY.xattr.user.a": "b"}
    assert plain_header(ours(member)) == b""
    assert any_header(ours(member)) == long_way(member)


@given(st.binary(min_size=BLOCK, max_size=BLOCK))
def test_rubbish_is_no_header(block: bytes):
    with pytest.raises(TarError):
        parse_header(block)


def test_a_header_is_told_from_other_beginnings():
    head = plain_header(TarMember("BZh"))
    assert is_tar(head + b"whatever follows")
    assert not is_tar(head[:-1])
    assert not is_tar(b"\x1f\x8b" + bytes(BLOCK))
    assert not is_tar(bytes(BLOCK))
