"""A body comes out as it was sent, however the client cut it and however the kernel hands it over."""

import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.storage.tar.entry import TarError
from husk.storage.workers.body import BodyReader, BodyUpload

END = b"0\r\n\r\n"


def in_chunks(pieces: list[bytes]) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece) + END


@contextmanager
def arriving(begun: bytes, rest: list[bytes], length: int | None) -> Iterator[BodyReader]:
    """A body of which the first bytes have been read and the others are sent piece by piece."""
    ours, theirs = socket.socketpair()

    def send() -> None:
        # Who found something wrong reads no more.
        with theirs, suppress(BrokenPipeError):
            for piece in rest:
                theirs.sendall(piece)

    sender = threading.Thread(daemon=True, target=send)
    sender.start()
    try:
        yield BodyReader(BodyUpload(ours.fileno(), begun, length))
    finally:
        ours.close()
        sender.join()


def read_all(body: BodyReader, size: int = 1000) -> bytes:
    found = b""
    buffer = memoryview(bytearray(size))
    while count := body.readinto(buffer):
        found += buffer[:count]
    return found


def write_all(body: BodyReader, most: int) -> bytes:
    with tempfile.TemporaryFile() as file:
        while body.hand_over(file.fileno(), most):
            pass
        return os.pread(file.fileno(), 1 << 20, 0)


pieces_of_data = st.lists(st.binary(max_size=6000), max_size=6)


@given(pieces_of_data, st.data(), st.integers(1, 9000))
def test_chunks(pieces: list[bytes], data: st.DataObject, size: int) -> None:
    sent = in_chunks(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=5)))
    parts = [sent[start:end] for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
    with arriving(parts[0], parts[1:], None) as body:
        assert read_all(body, size) == b"".join(pieces)
    with arriving(parts[0], parts[1:], None) as body:
        assert write_all(body, size) == b"".join(pieces)


@given(st.binary(max_size=20000), st.integers(0, 20000), st.integers(1, 9000))
def test_a_length(data: bytes, cut: int, size: int) -> None:
    for take in (read_all, write_all):
        with arriving(data[:cut], [data[cut:] + b"what follows is not ours"], len(data)) as body:
            assert take(body, size) == data


@pytest.mark.parametrize("take", [read_all, write_all])
def test_more_chunks_at_once_than_one_call_can_write(take: Callable[[BodyReader, int], bytes]) -> None:
    data = os.urandom(50_000)
    with arriving(b"", [in_chunks([data[at : at + 1] for at in range(len(data))])], None) as body:
        assert take(body, 1 << 18) == data


def test_both_ways_in_turn() -> None:
    pieces = [bytes([number]) * (7000 + number) for number in range(40)]
    data = b"".join(pieces)
    found = b""
    with arriving(b"", [in_chunks(pieces)], None) as body, tempfile.TemporaryFile() as file:
        buffer = memoryview(bytearray(512))
        while count := body.readinto(buffer):
            found += buffer[:count]
            moved = body.hand_over(file.fileno(), 9000)
            found += os.pread(file.fileno(), moved, os.lseek(file.fileno(), 0, os.SEEK_CUR) - moved)
    assert found == data


def test_a_socket_that_does_not_block_is_waited_for() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        threading.Timer(0.1, theirs.sendall, [in_chunks([b"late"])]).start()
        assert read_all(BodyReader(BodyUpload(ours.fileno(), b"", None))) == b"late"


def test_what_may_stand_beside_chunks_is_skipped() -> None:
    with arriving(b"5;name=value\r\nhello\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n", [], None) as body:
        assert read_all(body) == b"hello"


@pytest.mark.parametrize(
    ("sent", "length"),
    [
        (b"", None),
        (b"5\r\nhel", None),
        (b"5\r\nhello", None),
        (b"5\r\nhello\r\n", None),
        (b"5\r\nhelloXX0\r\n\r\n", None),
        (b"five\r\nhello\r\n", None),
        (b"-5\r\nhello\r\n", None),
        (b"0x5\r\nhello\r\n", None),
        (b"\r\n\r\n", None),
        (b"1" * 17 + b"\r\n", None),
        (b"1" * 10000, None),
        (b"hel", 5),
    ],
)
@pytest.mark.parametrize("take", [read_all, write_all])
def test_what_breaks_off_or_is_no_body(
    sent: bytes, length: int | None, take: Callable[[BodyReader, int], bytes]
) -> None:
    for begun in (b"", sent):
        with arriving(begun, [sent] if not begun else [], length) as body, pytest.raises(TarError):
            take(body, 1000)
