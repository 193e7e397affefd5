"""Data that we send on streams: as much as the peer's windows let, in the order it was given, in large frames.

Nothing is put into frames before the bytes are asked for (`take`), so what many small messages said meanwhile goes out
in few frames.
"""

from collections import deque

from hpack import Encoder

from husk.rpc.http2 import frames
from husk.rpc.http2.errors import FLOW_CONTROL_ERROR, Http2Error
from husk.rpc.http2.events import Headers

# Bytes of headers that are pressed (Huffman): that is Python's work, a microsecond for each of them, and what is longer
# is said once, when a call has failed.
_LARGEST_PRESSED = 1024


class StreamOutbox:
    """One stream's: data that waits, and what comes behind it."""

    __slots__ = ("ended", "granted", "number", "parts", "size", "start", "trailers", "wants_end")

    def __init__(self, number: int) -> None:
        self.number = number
        # What the peer let beyond the first window of its streams, less what was sent.
        self.granted = 0
        self.parts: deque[bytes] = deque()
        # Where in the first part the data begins that waits, and how much there is.
        self.start = 0
        self.size = 0
        self.wants_end = False
        self.trailers: Headers | None = None
        self.ended = False

    def cut(self, size: int) -> bytes:
        """Take out that much; what stays is not copied, however little the peer takes at a time."""
        pieces: list[bytes | memoryview] = []
        self.size -= size
        while size:
            part, start = self.parts[0], self.start
            taken = min(size, len(part) - start)
            size -= taken
            if start + taken < len(part):
                pieces.append(memoryview(part)[start : start + taken])
                self.start += taken
            else:
                pieces.append(memoryview(part)[start:] if start else part)
                self.parts.popleft()
                self.start = 0
        whole = pieces[0]
        return whole if len(pieces) == 1 and isinstance(whole, bytes) else b"".join(pieces)


class Outbox:
    """All of a connection."""

    def __init__(self) -> None:
        self.window = 65535
        self.first_window = 65535
        self.frame_size = frames.FRAME_SIZE
        # The streams whose data went out with the last `take`.
        self.moved: list[int] = []
        self._encoder = Encoder()
        # The smallest and the last size of the peer's table that it named since the last headers.
        self._table_sizes: tuple[int, int] | None = None
        self._ready: list[bytes] = []
        self.control_size = 0
        self._streams: dict[int, StreamOutbox] = {}
        # Those with data that their own window has room for, those whose window is used up, and those that have
        # nothing but their end to say.
        self._sending: dict[int, StreamOutbox] = {}
        self._narrow: dict[int, StreamOutbox] = {}
        self._ending: dict[int, StreamOutbox] = {}

    # streams

    def open(self, number: int) -> StreamOutbox:
        stream = self._streams[number] = StreamOutbox(number)
        return stream

    def forget(self, number: int) -> None:
        for streams in (self._streams, self._sending, self._narrow, self._ending):
            streams.pop(number, None)

    # what is to be sent

    def control(self, data: bytes) -> None:
        self._ready.append(data)
        self.control_size += len(data)

    def headers(self, number: int, headers: Headers, *, end: bool) -> None:
        if self._table_sizes is not None:
            for size in self._table_sizes:
                self._encoder.header_table_size = size
            self._table_sizes = None
        short = sum(len(name) + len(value) for name, value in headers) <= _LARGEST_PRESSED
        block = bytes(self._encoder.encode(headers, huffman=short))
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
            if stream.number not in self._narrow:
                self._sending[stream.number] = stream

    def end(self, stream: StreamOutbox, trailers: Headers | None = None) -> None:
        stream.wants_end = True
        stream.trailers = trailers
        if not stream.size:
            self._ending[stream.number] = stream

    # what the peer lets

    def widen(self, number: int, increment: int) -> None:
        """The peer takes more: of one stream, or of all together."""
        if not number:
            self.window += increment
            if self.window > frames.LARGEST_WINDOW:
                raise Http2Error(FLOW_CONTROL_ERROR, "the window of the connection is too large")
            return
        stream = self._streams.get(number)
        if stream is not None:
            stream.granted += increment
            if self._room(stream) > frames.LARGEST_WINDOW:
                raise Http2Error(FLOW_CONTROL_ERROR, f"the window of the stream {number} is too large")
            if number in self._narrow and self._room(stream) > 0:
                self._sending[number] = self._narrow.pop(number)

    def first_window_is(self, size: int) -> None:
        """The peer gives all streams more, or less, than before. The work does not depend on how many there are."""
        if size > self.first_window:
            self._sending.update(self._narrow)
            self._narrow.clear()
        self.first_window = size

    def table_size_is(self, size: int) -> None:
        size = min(size, 4096)
        self._table_sizes = min(size, self._table_sizes[0]) if self._table_sizes else size, size

    # bytes

    @property
    def waits(self) -> bool:
        """True while there is data that the peer's windows may have room for now."""
        return bool(self._sending)

    def take(self) -> tuple[list[bytes], list[int]]:
        """The bytes that may be sent now, and the streams that said their last with them."""
        ended: list[int] = []
        self.moved = []
        while self._sending and self.window > 0:
            # One that still has data afterwards comes behind the others when there is room again.
            number = next(iter(self._sending))
            stream = self._sending.pop(number)
            self._fill(stream)
            if stream.size:
                (self._sending if self._room(stream) > 0 else self._narrow)[number] = stream
            elif stream.wants_end and not stream.ended:
                self._ending[number] = stream
            if stream.ended:
                ended.append(number)
        for number, stream in self._ending.items():
            self._say_end(stream)
            ended.append(number)
        self._ending.clear()
        ready, self._ready, self.control_size = self._ready, [], 0
        return ready, ended

    def _room(self, stream: StreamOutbox) -> int:
        return self.first_window + stream.granted

    def _fill(self, stream: StreamOutbox) -> None:
        """Put what one stream has, and may send, into frames."""
        room = min(self.window, self._room(stream), stream.size, frames.LARGEST_WINDOW)
        if room <= 0:
            return
        data = stream.cut(room)
        stream.granted -= room
        self.window -= room
        self.moved.append(stream.number)
        for start in range(0, room, self.frame_size):
            piece = data[start : start + self.frame_size]
            last = stream.wants_end and stream.trailers is None and not stream.size
            last = last and start + self.frame_size >= room
            self._ready.append(frames.head(frames.DATA, last, stream.number, len(piece)))
            self._ready.append(piece)
            stream.ended = last

    def _say_end(self, stream: StreamOutbox) -> None:
        stream.ended = True
        if stream.trailers is not None:
            self.headers(stream.number, stream.trailers, end=True)
        else:
            self._ready.append(frames.frame(frames.DATA, frames.END_STREAM, stream.number))
