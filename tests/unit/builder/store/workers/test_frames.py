import pytest

from husk.builder.store.workers.frames import END, LARGEST, BadFrame, FramePieces, frame


def test_pieces_come_out_as_they_went_in_however_they_were_cut():
    data = b"".join(frame(piece) + piece for piece in (b"one", b"2" * 1000)) + END + frame(b"x") + b"x"
    for step in (1, 3, 7, len(data)):
        read = FramePieces()
        found: list[bytes] = []
        for start in range(0, len(data), step):
            read.feed(data[start : start + step])
            found += read.pieces()
        assert found == [b"one", b"2" * 1000, b"", b"x"]


def test_whoever_stops_in_the_middle_goes_on_there():
    read = FramePieces()
    read.feed(frame(b"one") + b"one" + END + frame(b"two") + b"two")
    for piece in read.pieces():
        if not piece:
            break
    assert list(read.pieces()) == [b"two"]


def test_none_is_too_large():
    with pytest.raises(BadFrame):
        frame(bytes(LARGEST + 1))
    with pytest.raises(BadFrame):
        frame(b"")
    read = FramePieces()
    read.feed((LARGEST + 1).to_bytes(4, "little"))
    with pytest.raises(BadFrame):
        list(read.pieces())
