"""What we send on streams: as much as the peer's windows let, in the order it was given, in large frames.

Nothing is put into frames before the bytes are asked for (`take`), so what many small messages said meanwhile goes out
in few frames.
"""

from collections import deque

from hpack import Encoder

from husk.rpc.http2 import frames
from husk.rpc.http2.errors import FLOW_CONTROL_ERROR, Http2Error
from husk.rpc.http2.events import Headers


class StreamOutbox:
    """One stream's: data that waits, and what comes behind it."""

    __slots__ = ("ended", "number", "parts", "size", "trailers", "wants_end", "window")

    def __init__(self, number: int, window: int) -> None:
        self.number = number
        self.window = window
        self.parts: deque[bytes] = deque()
        self.size = 0
        self.wants_end = False
        self.trailers: Headers | None = None
        self.ended = False


class Outbox:
    """All of a connection."""

    def __init__(self) -> None:
        self.window = 65535
        self.first_window = 65535
        self.frame_size = frames.FRAME_SIZE
        self._encoder = Encoder()
        self._ready: list[bytes] = []
        self.control_size = 0
        self._streams: dict[int, StreamOutbox] = {}
        self._dirty: dict[int, StreamOutbox] = {}

    # streams

    def open(self, number: int) -> StreamOutbox:
        stream = self._streams[number] = StreamOutbox(number, self.first_window)
        return stream

    def forget(self, number: int) -> None:
        self._streams.pop(number, None)
        self._dirty.pop(number, None)

    # what is to be sent

    def control(self, data: bytes) -> None:
        self._ready.append(data)
        self.control_size += len(data)

    def headers(self, number: int, headers: Headers, *, end: bool) -> None:
        block = bytes(self._encoder.encode(headers))
        kind, flags = frames.HEADERS, frames.END_STREAM if end else 0
        while True:
            piece, block = block[: self.frame_size], block[self.frame_size :]
            self._ready.append(frames.frame(kind, flags | (0 if block else frames.END_HEADERS), number, piece))
            if not block:
                return
            kind, flags = frames.CONTINUATION, 0

    def data(self, stream: StreamOutbox, data: bytes) -> None:
        if data:
            stream.parts.append(data)
            stream.size += len(data)
            self._dirty[stream.number] = stream

    def end(self, stream: StreamOutbox, trailers: Headers | None = None) -> None:
        stream.wants_end = True
        stream.trailers = trailers
        self._dirty[stream.number] = stream

    # what the peer lets

    def widen(self, number: int, increment: int) -> StreamOutbox | None:
        """The peer takes more; the stream that it is about, if it is one that is open."""
        if not number:
            self.window += increment
            if self.window > frames.LARGEST_WINDOW:
                raise Http2Error(FLOW_CONTROL_ERROR, "the window of the connection is too large")
            return None
        stream = self._streams.get(number)
        if stream is not None:
            stream.window += increment
            if stream.window > frames.LARGEST_WINDOW:
                raise Http2Error(FLOW_CONTROL_ERROR, f"the window of the stream {number} is too large")
        return stream

    def first_window_is(self, size: int) -> None:
        difference, self.first_window = size - self.first_window, size
        for number in self._streams:
            self.widen(number, difference)

    def table_size_is(self, size: int) -> None:
        self._encoder.header_table_size = min(size, 4096)

    # bytes

    def take(self) -> tuple[list[bytes], list[int]]:
        """The bytes that may be sent now, and the streams that said their last with them."""
        ended: list[int] = []
        for stream in list(self._dirty.values()):
            room = self.window
            self._fill(stream)
            if stream.ended:
                ended.append(stream.number)
            if stream.ended or not stream.size:
                self._dirty.pop(stream.number, None)
            elif self.window < room:
                # Those behind it come first when there is room again.
                self._dirty[stream.number] = self._dirty.pop(stream.number)
        ready, self._ready, self.control_size = self._ready, [], 0
        return ready, ended

    def _fill(self, stream: StreamOutbox) -> None:
        """Put what one stream has, and may send, into frames."""
        room = min(self.window, stream.window, stream.size)
        if room > 0:
            data = b"".join(stream.parts) if len(stream.parts) > 1 else stream.parts[0]
            stream.parts.clear()
            if room < len(data):
                stream.parts.append(data[room:])
            stream.size -= room
            stream.window -= room
            self.window -= room
            for start in range(0, room, self.frame_size):
                piece = data[start : min(start + self.frame_size, room)]
                last = stream.wants_end and stream.trailers is None and not stream.size
                last = last and start + self.frame_size >= room
                self._ready.append(frames.head(frames.DATA, last, stream.number, len(piece)))
                self._ready.append(piece)
                stream.ended = last
        if stream.wants_end and not stream.size and not stream.ended:
            stream.ended = True
            if stream.trailers is not None:
                self.headers(stream.number, stream.trailers, end=True)
            else:
                self._ready.append(frames.frame(frames.DATA, frames.END_STREAM, stream.number))
