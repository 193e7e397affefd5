"""The reader for a stream of any compression; and a tar whose first name looks like one."""

import bz2
import gzip
import io
import lzma
import tarfile

import pytest
import zstandard

from husk.storage.tar.decompress import choose_reader
from tests.support.archives import member, write

ARCHIVE = write((member("f"), b"content" * 1000))


class Stream(io.BytesIO):
    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.head = data[:512]


def all_of(data: bytes) -> bytes:
    reader = choose_reader(Stream(data))
    found, buffer = b"", memoryview(bytearray(4000))
    while count := reader.readinto(buffer):
        found += buffer[:count]
    return found


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_what_was_compressed_comes_out(compress):
    assert all_of(compress(ARCHIVE)) == ARCHIVE


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_what_was_cut_off_is_refused(compress):
    packed = compress(ARCHIVE)
    for cut in (len(packed) // 2, len(packed) - 1):
        with pytest.raises(EOFError):
            all_of(packed[:cut])


def test_a_frame_of_zstd_that_is_cut_where_its_data_ends_is_refused():
    packer = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    packed = packer.compress(ARCHIVE) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    assert all_of(packed + packer.flush()) == ARCHIVE
    with pytest.raises(EOFError):
        all_of(packed)


def test_several_gzip_members_are_one_stream():
    assert all_of(gzip.compress(ARCHIVE[:1000]) + gzip.compress(ARCHIVE[1000:])) == ARCHIVE


@pytest.mark.parametrize("name", ["BZh", "\x1f"])
def test_a_tar_whose_first_name_looks_like_something_else_is_a_tar(name: str):
    archive = write((member(name), b"x"), format=tarfile.USTAR_FORMAT)
    assert all_of(archive) == archive


def test_what_is_none_of_them_passes_as_it_is():
    assert all_of(b"neither") == b"neither"
