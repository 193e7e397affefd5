"""Reading tar archives of every dialect, whole, damaged and hostile."""

import contextlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from husk.storage.tar.stream import BLOCK, Entry, TarError, TarStream, clean_name, entries, parse_header, parse_pax


def stream_of(data: bytes, piece: int = 1 << 20) -> TarStream:
    pieces = iter([data[at : at + piece] for at in range(0, len(data), piece)])
    return TarStream(lambda: memoryview(next(pieces, b"")))


def read(data: bytes, piece: int = 1 << 20, needs_end: bool = False) -> list[tuple[Entry, bytes]]:
    stream = stream_of(data, piece)
    return [(entry, b"".join(map(bytes, stream.pieces(entry.size)))) for entry in entries(stream, needs_end)]


def write(*members: tuple[tarfile.TarInfo, bytes], format: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for member, data in members:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def member(name: str, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(info, key, value)
    return info


FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("piece", [1, 7, 512, 1 << 20])
def test_entries_of_every_format_come_out_as_they_went_in(format: int, piece: int):
    archive = write(
        (member("dir", type=tarfile.DIRTYPE, mode=0o1777, mtime=5), b""),
        (member("dir/file", mode=0o4755, uid=1000, gid=1001, mtime=1700000000), b"content" * 100),
        (member("link", type=tarfile.SYMTYPE, linkname="/etc/passwd"), b""),
        (member("hard", type=tarfile.LNKTYPE, linkname="dir/file"), b""),
        (member("null", type=tarfile.CHRTYPE, devmajor=1, devminor=3), b""),
        format=format,
    )
    found = read(archive, piece)
    assert [entry.name.rstrip(b"/") for entry, _ in found] == [b"dir", b"dir/file", b"link", b"hard", b"null"]
    assert [entry.kind for entry, _ in found] == [b"5", b"0", b"2", b"1", b"3"]
    file, data = found[1]
    assert (file.mode, file.uid, file.gid, file.mtime_ns) == (0o4755, 1000, 1001, 1700000000 * 10**9)
    assert data == b"content" * 100
    assert found[2][0].link == b"/etc/passwd"
    assert (found[4][0].major, found[4][0].minor) == (1, 3)


@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_names_and_targets_longer_than_the_header_has_room_for(format: int):
    name, target = "d/" * 150 + "file", "t/" * 200 + "target"
    [(entry, _)] = read(write((member(name, type=tarfile.SYMTYPE, linkname=target), b""), format=format))
    assert entry.name == name.encode()
    assert entry.link == target.encode()


def test_the_prefix_of_ustar_names_is_joined():
    name = "directory/" * 12 + "file"
    [(entry, _)] = read(write((member(name), b"x"), format=tarfile.USTAR_FORMAT))
    assert entry.name == name.encode()


@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_numbers_larger_than_octal_fields(format: int):
    [(entry, _)] = read(write((member("f", uid=3_000_000_000, gid=4_000_000_000), b""), format=format))
    assert (entry.uid, entry.gid) == (3_000_000_000, 4_000_000_000)


def test_times_with_fractions_and_before_1970_are_exact():
    late = member("late", pax_headers={"mtime": "1700000000.123456789"})
    early = member("early", pax_headers={"mtime": "-1.5"})
    found = read(write((late, b""), (early, b"")))
    assert [entry.mtime_ns for entry, _ in found] == [1700000000_123456789, -1_500_000_000]


def test_extended_attributes_are_bytes():
    capability = b"\x01\x00\x00\x02\x00\x20\xff\x00\n="
    info = member("f", pax_headers={"SCHILY.xattr.security.capability": capability.decode("utf-8", "surrogateescape")})
    [(entry, _)] = read(write((info, b"")))
    assert entry.xattrs == [("security.capability", capability)]


def test_names_that_are_no_text_survive():
    name = b"caf\xe9-\xff"
    [(entry, _)] = read(write((member(name.decode("utf-8", "surrogateescape")), b"")))
    assert entry.name == name


def test_a_global_header_holds_for_all_that_follow():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"uid": "77"}) as archive:
        archive.addfile(member("a"))
        archive.addfile(member("b"))
    assert [entry.uid for entry, _ in read(out.getvalue())] == [77, 77]


@pytest.mark.parametrize("format", ["gnu", "pax0.0", "pax0.1", "pax1.0"])
def test_sparse_files_of_every_format(tmp_path: Path, format: str):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        for index in range(30):
            file.seek(index * 1_000_000)
            file.write(b"data%d" % index)
        file.truncate(40_000_000)
    flags = ["--format=gnu"] if format == "gnu" else ["--format=pax", f"--sparse-version={format[3:]}"]
    done = subprocess.run(["tar", "c", "--sparse", *flags, "-C", tmp_path, "sparse"], capture_output=True, check=True)
    [(entry, data)] = read(done.stdout)
    assert entry.name == b"sparse"
    assert entry.kind == b"0"
    assert entry.real_size == 40_000_000
    assert entry.sparse is not None
    content = bytearray(entry.real_size)
    at = 0
    for offset, length in entry.sparse:
        content[offset : offset + length] = data[at : at + length]
        at += length
    assert content == path.read_bytes()


def test_a_file_that_is_nothing_but_a_hole(tmp_path: Path):
    path = tmp_path / "hole"
    path.touch()
    os.truncate(path, 1 << 40)
    done = subprocess.run(["tar", "c", "--sparse", "-C", tmp_path, "hole"], capture_output=True, check=True)
    [(entry, data)] = read(done.stdout)
    assert entry.real_size == 1 << 40
    assert data == b""


def test_a_directory_of_the_time_before_posix_is_a_file_with_a_slash():
    block = bytearray(member("old/").tobuf(tarfile.USTAR_FORMAT)[:BLOCK])
    block[156] = 0
    block[148:156] = b"%06o\0 " % (sum(block) - sum(block[148:156]) + 256)
    [(entry, _)] = read(bytes(block))
    assert entry.kind == b"5"


def test_an_archive_may_stop_without_an_end_mark_unless_the_end_is_needed():
    archive = write((member("f"), b"x" * BLOCK))[: 2 * BLOCK]
    assert len(read(archive)) == 1
    with pytest.raises(TarError, match="unexpected EOF"):
        read(archive, needs_end=True)


@pytest.mark.parametrize("cut", [1, 511, 513, 1000, 1024 + 100, 1024 + 512 + 100])
def test_a_truncated_archive_is_an_unexpected_end(cut: int):
    archive = write((member("a"), b"x" * 100), (member("b"), b"y" * 1000))
    with pytest.raises(TarError, match="unexpected EOF"):
        read(archive[:cut])


def test_a_stream_that_has_ended_is_not_asked_again():
    pieces = iter([b"", b"more"])
    stream = TarStream(lambda: memoryview(next(pieces)))
    assert list(entries(stream)) == []
    stream.drain()
    assert next(pieces) == b"more"


def test_a_damaged_header_is_refused():
    archive = bytearray(write((member("a"), b"x")))
    archive[0] ^= 1
    with pytest.raises(TarError, match="invalid tar header"):
        read(bytes(archive))


def test_an_unknown_kind_of_entry_is_refused():
    with pytest.raises(TarError, match="unhandled tar header type"):
        read(write((member("a", type=b"Z"), b"")))


def test_a_huge_extension_header_is_refused_before_it_is_read():
    header = member("x", type=tarfile.XHDTYPE, size=1 << 40).tobuf(tarfile.GNU_FORMAT)
    with pytest.raises(TarError, match="too long"):
        read(header)


@pytest.mark.parametrize(
    "data", [b"x", b"5 a=b", b"999 a=b\n", b"6 ab\n\n", b"-6 a=b\n", b"3 =\n", b"0 a=b\n", b"6 a=bc"]
)
def test_malformed_pax_records_are_refused(data: bytes):
    with pytest.raises(TarError):
        parse_pax(data)


@given(st.dictionaries(st.binary(min_size=1).filter(lambda key: b"=" not in key and key[:1] != b"G"), st.binary()))
def test_pax_records_come_out_as_they_went_in(records: dict[bytes, bytes]):
    data = b""
    for key, value in records.items():
        rest = b" " + key + b"=" + value + b"\n"
        length = len(rest)
        while len(str(length)) + len(rest) != length:
            length = len(str(length)) + len(rest)
        data += str(length).encode() + rest
    assert parse_pax(data) == records


@given(st.data())
@settings(max_examples=300)
def test_no_damage_raises_anything_but_a_tar_error(data: st.DataObject):
    archive = bytearray(
        write(
            (member("d/" * 80 + "x", pax_headers={"SCHILY.xattr.user.a": "b", "mtime": "1.5"}), b"data"),
            (member("s", type=tarfile.SYMTYPE, linkname="l" * 200), b""),
        )
    )
    for _ in range(data.draw(st.integers(1, 6))):
        archive[data.draw(st.integers(0, len(archive) - 1))] = data.draw(st.integers(0, 255))
    # Make the checksums right again, so that the damage gets past them.
    for at in range(0, len(archive) - BLOCK, BLOCK):
        block = archive[at : at + BLOCK]
        if block[257:262] == b"ustar":
            archive[at + 148 : at + 156] = b"%06o\0 " % (sum(block) - sum(block[148:156]) + 256)
    with contextlib.suppress(TarError):
        read(bytes(archive))


@given(st.binary(min_size=BLOCK, max_size=BLOCK))
def test_rubbish_is_no_header(block: bytes):
    with pytest.raises(TarError):
        parse_header(block)


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        (b"a/b", b"a/b"),
        (b"/etc/passwd", b"etc/passwd"),
        (b"./a/", b"a"),
        (b"./", b""),
        (b".", b""),
        (b"/", b""),
        (b"a//b/./c", b"a/b/c"),
        (b"a/../b", b"b"),
        (b"...", b"..."),
        (b"a/..b", b"a/..b"),
        (b".wh.x", b".wh.x"),
    ],
)
def test_names_become_relative_to_the_root(name: bytes, clean: bytes):
    assert clean_name(name) == clean


@pytest.mark.parametrize("name", [b"..", b"../a", b"/../a", b"a/../../b", b"./../x", b"a/b/../../../c"])
def test_names_that_leave_the_root_are_refused(name: bytes):
    with pytest.raises(TarError, match="outside"):
        clean_name(name)


@given(st.lists(st.sampled_from([b"a", b"..", b".", b"", b"..a", b".wh.b"])))
def test_a_clean_name_never_has_a_part_that_moves(parts: list[bytes]):
    try:
        clean = clean_name(b"/".join(parts))
    except TarError:
        return
    assert not clean or not set(clean.split(b"/")) & {b"", b".", b".."}
