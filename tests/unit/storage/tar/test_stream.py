"""An archive read out of buffers of any size, and its data written to files."""

from pathlib import Path

import pytest

from husk.storage.tar.entry import TarError
from husk.storage.tar.stream import LARGE, TarStream, entries
from tests.support.archives import DIALECTS, archive_of, member, write


def stream_of(data: bytes, piece: int) -> TarStream:
    pieces = iter([data[at : at + piece] for at in range(0, len(data), piece)])
    return TarStream(lambda: memoryview(next(pieces, b"")))


def read(data: bytes, piece: int) -> list[tuple[bytes, bytes]]:
    stream = stream_of(data, piece)
    return [(entry.name, b"".join(map(bytes, stream.pieces(entry.size)))) for entry in entries(stream)]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("piece", [1, 7, 512, 1000])
def test_buffers_of_any_size_hold_the_same_archive(dialect: str, piece: int):
    archive = archive_of(dialect)
    assert read(archive, piece) == read(archive, len(archive))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_that_is_cut_off_is_refused_at_every_block(dialect: str):
    """Reading goes on or ends, it never waits for what does not come: a map of a sparse file was waited for once."""
    archive = archive_of(dialect)
    whole = read(archive, 1 << 20)
    for cut in range(0, len(archive), 256):
        try:
            assert read(archive[:cut], 1000) == whole[: len(read(archive[:cut], 1000))]
        except TarError as error:
            assert str(error) == "unexpected EOF"


@pytest.mark.parametrize("piece", [1, 700, 5000])
def test_an_archive_may_end_behind_the_last_byte_of_a_file(piece: int):
    archive = write((member("f"), b"content"))
    for behind in (0, 100):
        assert read(archive[: 512 + 7 + behind], piece) == [(b"f", b"content")]
    with pytest.raises(TarError, match="unexpected EOF"):
        read(archive[: 512 + 6], piece)


@pytest.mark.parametrize("size", [0, 1, LARGE - 1, LARGE + 1000])
def test_data_goes_into_a_file_and_what_is_large_is_handed_over(tmp_path: Path, size: int):
    data = bytes(number % 251 for number in range(size))
    archive = write((member("f"), data), (member("g"), b"behind"))
    at = 0

    def next_buffer() -> memoryview:
        nonlocal at
        at += 700
        return memoryview(archive[at - 700 : at])

    def hand_over(fd: int, count: int) -> int:
        nonlocal at
        moved = min(count, 5000)
        file.write(archive[at : at + moved])
        at += moved
        return moved

    stream = TarStream(next_buffer, hand_over)
    names = []
    with (tmp_path / "out").open("wb", buffering=0) as file:
        for entry in entries(stream):
            names.append(entry.name)
            stream.write_to(file.fileno(), entry.size)
    assert names == [b"f", b"g"]
    assert (tmp_path / "out").read_bytes() == data + b"behind"


def test_a_stream_that_has_ended_is_not_asked_again():
    pieces = iter([b"", b"more"])
    stream = TarStream(lambda: memoryview(next(pieces)))
    assert list(entries(stream)) == []
    stream.drain()
    assert next(pieces) == b"more"
