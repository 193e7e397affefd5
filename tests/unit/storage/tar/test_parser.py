"""Archives of every dialect, whole, cut off, damaged and hostile: bytes in, entries out."""

import contextlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from husk.storage.tar.entry import BLOCK, TarEntry, TarError, padding
from husk.storage.tar.parser import Parser
from tests.support.archives import DIALECTS, FORMATS, SPARSE_FORMATS, archive_of, member, sparse_archive, write


def read(data: bytes) -> list[tuple[TarEntry, bytes]]:
    """Read without any input: the reader gives the parser what it wants and keeps the data for itself."""
    parser, at = Parser(), 0
    found: list[tuple[TarEntry, bytes]] = []
    while not parser.ended:
        taken = data[at : at + parser.wants]
        entry = parser.feed(taken)
        at += len(taken)
        if entry is None:
            continue
        content = data[at : at + entry.size]
        if len(content) < entry.size:
            raise TarError("unexpected EOF")
        at += entry.size + padding(entry.size)
        found.append((entry, content))
    return found


@pytest.mark.parametrize("format", FORMATS)
def test_entries_of_every_format_come_out_as_they_went_in(format: int):
    archive = write(
        (member("dir", type=tarfile.DIRTYPE, mode=0o1777, mtime=5), b""),
        (member("dir/file", mode=0o4755, uid=1000, gid=1001, mtime=1700000000), b"content" * 100),
        (member("link", type=tarfile.SYMTYPE, linkname="/etc/passwd"), b""),
        (member("hard", type=tarfile.LNKTYPE, linkname="dir/file"), b""),
        (member("null", type=tarfile.CHRTYPE, devmajor=1, devminor=3), b""),
        format=format,
    )
    found = read(archive)
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


def test_what_is_said_of_all_entries_has_a_limit():
    """It is gone through for each of them."""
    archive = b""
    for number in range(40):
        info = tarfile.TarInfo(f"f{number}")
        archive += info.create_pax_global_header({f"comment{number}": "x" * 500, "path": "p"})
    with pytest.raises(TarError, match="global headers are too long"):
        read(archive)


@pytest.mark.parametrize("format", SPARSE_FORMATS)
def test_sparse_files_of_every_format(tmp_path: Path, format: str):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        for index in range(30):
            file.seek(index * 1_000_000)
            file.write(b"data%d" % index)
        file.truncate(40_000_000)
    [(entry, data)] = read(sparse_archive(path, format))
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


@pytest.mark.parametrize("behind", [0, 1, 500])
def test_an_archive_may_stop_behind_the_last_byte_of_a_file(behind: int):
    archive = write((member("f"), b"content"))[: BLOCK + 7 + behind]
    assert [data for _, data in read(archive)] == [b"content"]


def test_one_block_of_the_end_mark_is_enough_but_nothing_else_may_follow_it():
    archive = write((member("f"), b"x" * BLOCK))[: 3 * BLOCK]
    assert len(read(archive)) == 1
    assert len(read(archive + bytes(BLOCK) + b"junk")) == 1
    with pytest.raises(TarError, match="unexpected EOF"):
        read(archive + bytes(100))
    with pytest.raises(TarError, match="invalid tar header"):
        read(archive + archive[:BLOCK])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_archive_that_is_cut_at_any_byte_is_whole_up_to_there_or_refused(dialect: str):
    """Nobody can tell that there should be more where an entry is whole and no word about the next one has come."""
    archive = archive_of(dialect)
    names = [entry.name for entry, _ in read(archive)]
    ends: set[int] = set()
    for cut in range(len(archive)):
        try:
            entries = read(archive[:cut])
        except TarError as error:
            assert str(error) == "unexpected EOF"
            continue
        assert [entry.name for entry, _ in entries] == names[: len(entries)]
        if len(entries) < len(names):
            ends.add(cut)
            padded = padding(entries[-1][0].size) if entries else 0
            assert cut % BLOCK == 0 or -cut % BLOCK <= padded
    # What a global header says is about nothing yet.
    assert len({-(-cut // BLOCK) for cut in ends}) == len(names) + (dialect == "global")


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
