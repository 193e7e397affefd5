"""The bytes that really travel: raw requests on the socket, and the frames of logs and attach taken apart."""

import fcntl
import json
import socket
import struct
import termios
from typing import NamedTuple, Self

STDIN, STDOUT, STDERR = 0, 1, 2


def split_frames(data: bytes) -> list[tuple[int, bytes]]:
    """(stream, payload) of each frame; fails on anything that is not whole frames."""
    frames = []
    position = 0
    while position < len(data):
        header = data[position : position + 8]
        assert len(header) == 8, f"half a frame header: {header!r}"
        stream, zeros, length = struct.unpack(">B3sL", header)
        assert zeros == b"\0\0\0" and stream in (1, 2), f"no frame header: {header!r}"
        payload = data[position + 8 : position + 8 + length]
        assert len(payload) == length, f"a frame of {length} bytes has only {len(payload)}"
        frames.append((stream, payload))
        position += 8 + length
    return frames


def stream_of(data: bytes, stream: int) -> bytes:
    """Return the bytes of one stream, without the frames."""
    return b"".join(payload for number, payload in split_frames(data) if number == stream)


class Head(NamedTuple):
    """The start of a response."""

    status: int
    reason: str
    headers: dict[str, str]


class RawClient:
    """One connection that sends exactly what it is told and reads as the bytes come."""

    def __init__(self, channel: socket.socket) -> None:
        self.socket = channel
        self._unread = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(
        self, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None, host: str = "docker"
    ) -> None:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    def head(self) -> Head:
        """Read a response up to its body."""
        while b"\r\n\r\n" not in self._unread:
            data = self.socket.recv(65536)
            assert data, f"the connection ended inside the headers: {self._unread!r}"
            self._unread += data
        text, _, self._unread = self._unread.partition(b"\r\n\r\n")
        first, *lines = text.decode("latin-1").split("\r\n")
        _, status, reason = first.split(" ", 2)
        return Head(int(status), reason, {k.title(): v for k, _, v in (line.partition(": ") for line in lines)})

    def read_until(self, wanted: bytes) -> bytes:
        """All bytes up to and with `wanted`."""
        while wanted not in self._unread:
            data = self.socket.recv(65536)
            assert data, f"the connection ended before {wanted!r}: {self._unread!r}"
            self._unread += data
        found, _, self._unread = self._unread.partition(wanted)
        return found + wanted

    def read_frame(self) -> tuple[int, bytes]:
        header = self.read_exactly(8)
        return header[0], self.read_exactly(int.from_bytes(header[4:], "big"))

    def read_to_end(self) -> bytes:
        parts = [self._unread]
        self._unread = b""
        while data := self.socket.recv(1 << 18):
            parts.append(data)
        return b"".join(parts)

    def json_body(self) -> object:
        """A short chunked JSON answer, read to the end of its last chunk."""
        text = self.read_until(b"0\r\n\r\n")
        chunks = text.split(b"\r\n")
        return json.loads(b"".join(chunks[1::2]))

    def unread(self) -> int:
        """Return how many bytes were sent that the other side has not taken yet."""
        (left,) = struct.unpack("i", fcntl.ioctl(self.socket, termios.TIOCOUTQ, struct.pack("i", 0)))
        return int(left)

    def half_close(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self.socket.close()

    def read_exactly(self, size: int) -> bytes:
        parts, left = [self._unread[:size]], size - len(self._unread)
        self._unread = self._unread[size:]
        while left > 0:
            data = self.socket.recv(min(left, 1 << 18))
            assert data, f"the connection ended: {b''.join(parts)[:1000]!r}"
            parts.append(data)
            left -= len(data)
        return b"".join(parts)
