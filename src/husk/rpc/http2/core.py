"""One connection of HTTP/2, without I/O.

    http = Http2(client=True)
    number = http.open([(b":method", b"POST"), …])
    http.send(number, b"…"); http.end(number)
    transport.writelines(http.outgoing())
    for event in http.feed(bytes_that_came): …

A stream is gone when both sides have ended it, or one has reset it. The peer may send what our windows have room for: a
stream's is given back when its user took the data in (`acknowledge`), the connection's at once, so that a stream that
nobody reads does not stop the others.
"""

import os
from collections.abc import Iterator

from hpack import Decoder
from hpack.exceptions import HPACKError, OversizedHeaderListError
from msgspec import Struct

from husk.rpc.http2 import errors, frames
from husk.rpc.http2.errors import Http2Error, StreamGone
from husk.rpc.http2.events import (
    ConnectionEnded,
    DataReceived,
    Event,
    GoingAway,
    Headers,
    HeadersReceived,
    PingAnswered,
    StreamReset,
    Writable,
)
from husk.rpc.http2.outbox import Outbox, StreamOutbox

# Settings take some microseconds each, and a read has room for tens of thousands.
_FRAMES_OF_A_TURN = 1000
_CONNECTION_WINDOW = 16 << 20


class PeerLimits(Struct, frozen=True):
    """The limits of what a peer may ask for."""

    streams: int = 128
    window: int = 1 << 20
    header_size: int = 64 << 10
    # Frames that one block of headers may come in.
    header_frames: int = 32
    # Streams that are reset and not ended: each that ends well makes up for one.
    resets: int = 1000


class _Stream:
    __slots__ = ("answered", "credit", "out", "owed", "remote_ended")

    def __init__(self, out: StreamOutbox, window: int) -> None:
        self.out = out
        # How much the peer may still send, and how much was taken in that it was not told of.
        self.credit = window
        self.owed = 0
        # Have the first headers of the peer come?
        self.answered = False
        self.remote_ended = False


class Http2:
    """Both sides: `client` says which of them we are."""

    def __init__(self, *, client: bool, limits: PeerLimits | None = None) -> None:
        self.client = client
        self.limits = limits or PeerLimits()
        self.over = False
        self._reader = frames.FrameReader()
        self._decoder = Decoder(max_header_list_size=self.limits.header_size)
        self._out = Outbox()
        self._streams: dict[int, _Stream] = {}
        self._preface = b"" if client else frames.PREFACE
        self.settled = False  # are the peer's settings here, the first that it says?
        self._next = 1 if client else 2
        self._highest = 0
        self._credit = 65535 + _CONNECTION_WINDOW
        self._owed = 0
        self._resets = 0
        self._leaving = False
        self._widened = False  # has the peer given us more room than when we were last fed?
        self.peer_streams = 100  # at once
        # A block of headers whose end has not come.
        self._block: tuple[int, int, list[bytes]] | None = None
        if client:
            self._out.control(frames.PREFACE)
        ours = {frames.INITIAL_WINDOW_SIZE: self.limits.window, frames.MAX_HEADER_LIST_SIZE: self.limits.header_size}
        ours[frames.ENABLE_PUSH if client else frames.MAX_CONCURRENT_STREAMS] = 0 if client else self.limits.streams
        self._out.control(frames.settings(ours) + frames.window_update(0, _CONNECTION_WINDOW))
        self._handlers = {
            frames.DATA: self._on_data,
            frames.HEADERS: self._on_headers,
            frames.RST_STREAM: self._on_reset,
            frames.SETTINGS: self._on_settings,
            frames.PUSH_PROMISE: self._on_push,
            frames.PING: self._on_ping,
            frames.GOAWAY: self._on_go_away,
            frames.WINDOW_UPDATE: self._on_window_update,
        }

    # --- what we say -------------------------------------------------------------------------------------------------

    @property
    def stream_count(self) -> int:
        return len(self._streams)

    @property
    def can_open(self) -> bool:
        """True while one more stream may be opened."""
        return not self.over and not self._leaving and len(self._streams) < self.peer_streams

    def open(self, headers: Headers) -> int:
        """Begin a stream, as a client."""
        if not self.can_open or self._next > frames.LARGEST_WINDOW:
            raise StreamGone("the peer takes no more streams")
        number, self._next = self._next, self._next + 2
        self._streams[number] = _Stream(self._out.open(number), self.limits.window)
        self._out.headers(number, headers, end=False)
        return number

    def send_headers(self, number: int, headers: Headers) -> None:
        self._of(number)
        self._out.headers(number, headers, end=False)

    def send(self, number: int, data: bytes) -> None:
        self._out.data(self._of(number).out, data)

    def end(self, number: int, trailers: Headers | None = None) -> None:
        """Nothing more comes from us, behind what was sent and these trailers."""
        self._out.end(self._of(number).out, trailers)

    def unsent(self, number: int) -> int:
        """Count the bytes of a stream that still wait for the peer's window."""
        stream = self._streams.get(number)
        return stream.out.size if stream is not None else 0

    def reset(self, number: int, code: int) -> None:
        """End a stream at once; one that is gone stays so."""
        if number in self._streams and not self.over:
            self._forget(number)
            self._out.control(frames.reset(number, code))

    def acknowledge(self, number: int, credit: int) -> None:
        """That much of a stream was taken in: the peer may send as much again."""
        stream = self._streams.get(number)
        if stream is None or stream.remote_ended:
            return
        stream.owed += credit
        if stream.owed * 2 >= self.limits.window:
            self._out.control(frames.window_update(number, stream.owed))
            stream.credit += stream.owed
            stream.owed = 0

    def ping(self, data: bytes | None = None) -> bytes:
        """Ask the peer to answer; eight bytes by which the answer is known."""
        data = data or os.urandom(8)
        self._out.control(frames.frame(frames.PING, 0, 0, data))
        return data

    def leave(self, code: int = errors.NO_ERROR, reason: str = "") -> None:
        """Take no new streams."""
        if not self._leaving:
            self._leaving = True
            self._out.control(frames.go_away(self._highest, code, reason.encode()[:200]))

    def outgoing(self) -> list[bytes]:
        """Take the bytes to send now, and let go of the streams that are over with them."""
        ready, ended = self._out.take()
        for number in ended:
            stream = self._streams.get(number)
            if stream is not None and stream.remote_ended:
                self._finish(number)
            elif stream is not None and not self.client:
                # A server that has answered wants no more of the request.
                self._forget(number)
                ready.append(frames.reset(number, errors.NO_ERROR))
        return ready

    @property
    def moved(self) -> list[int]:
        """The streams of which data was among what `outgoing` gave last."""
        return self._out.moved

    @property
    def backlog(self) -> int:
        """The bytes of answers to the peer's own frames that wait: a peer that does not read them is not read from."""
        return self._out.control_size

    # --- what the peer says ------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> list[Event]:
        """Never raises: what breaks the rules is the last event, `ConnectionEnded`."""
        return [event for events in self.feed_in_turns(data) for event in events]

    def feed_in_turns(self, data: bytes) -> Iterator[list[Event]]:
        """Give the events of some frames at a time, so that a flood of small ones keeps nobody else waiting.

        All turns are taken before more is fed.
        """
        events: list[Event] = []
        if self.over:
            return
        try:
            if self._preface:
                data = self._begin(data)
            for count, (kind, flags, number, payload) in enumerate(self._reader.feed(data), 1):
                self._take(kind, flags, number, payload, events)
                if count % _FRAMES_OF_A_TURN == 0:
                    yield events
                    events = []
                    if self.over:
                        return
            if self._owed * 4 >= _CONNECTION_WINDOW:
                self._out.control(frames.window_update(0, self._owed))
                self._credit += self._owed
                self._owed = 0
            if self._widened:
                self._widened = False
                if self._out.waits:
                    events.append(Writable())
        except Http2Error as error:
            self.leave(error.code, error.reason)
            self.over = True
            self._streams.clear()
            events.append(ConnectionEnded(error.code, error.reason))
        yield events

    def _begin(self, data: bytes) -> bytes:
        size = min(len(data), len(self._preface))
        if data[:size] != self._preface[:size]:
            raise Http2Error(errors.PROTOCOL_ERROR, "this is not the beginning of HTTP/2")
        self._preface = self._preface[size:]
        return data[size:]

    def _take(self, kind: int, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        if self._block is not None or kind == frames.CONTINUATION:
            self._on_continuation(kind, flags, number, payload, events)
            return
        if not self.settled:
            if kind != frames.SETTINGS or flags & frames.ACK:
                raise Http2Error(errors.PROTOCOL_ERROR, "the first frame has to be settings")
            self.settled = True
        if (handler := self._handlers.get(kind)) is not None:
            handler(flags, number, payload, events)

    def _on_data(self, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        size = len(payload)
        self._credit -= size
        self._owed += size
        if self._credit < 0:
            raise Http2Error(errors.FLOW_CONTROL_ERROR, "more data than the window of the connection has room for")
        stream = self._streams.get(number)
        if stream is None:
            self._must_be_known(number, "data")
            return
        stream.credit -= size
        if stream.credit < 0:
            raise Http2Error(errors.FLOW_CONTROL_ERROR, f"more data than the window of stream {number} has room for")
        if stream.remote_ended or (self.client and not stream.answered):
            raise Http2Error(errors.PROTOCOL_ERROR, f"data where the stream {number} can have none")
        if flags & frames.PADDED:
            payload = frames.without_padding(frames.PADDED, payload)
        ended = bool(flags & frames.END_STREAM)
        events.append(DataReceived(number, payload, size, ended))
        if ended:
            self._remote_ended(number, stream)

    def _on_headers(self, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        payload = frames.without_padding(flags, payload)
        if flags & frames.END_HEADERS:
            self._on_block(flags, number, payload, events)
        else:
            self._block = flags, number, [payload]

    def _on_continuation(self, kind: int, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        if self._block is None or kind != frames.CONTINUATION or self._block[1] != number:
            raise Http2Error(errors.PROTOCOL_ERROR, "a frame between those of one block of headers")
        first, _, pieces = self._block
        pieces.append(payload)
        if len(pieces) > self.limits.header_frames or sum(map(len, pieces)) > self.limits.header_size:
            raise Http2Error(errors.ENHANCE_YOUR_CALM, "headers that are too large")
        if flags & frames.END_HEADERS:
            self._block = None
            self._on_block(first, number, b"".join(pieces), events)

    def _on_block(self, flags: int, number: int, block: bytes, events: list[Event]) -> None:
        # Even of a stream that is gone the headers have to be read: they change what later ones mean.
        try:
            headers = [(bytes(name), bytes(value)) for name, value in self._decoder.decode(block, raw=True)]
        except OversizedHeaderListError as error:
            raise Http2Error(errors.ENHANCE_YOUR_CALM, "headers that are too large") from error
        except (HPACKError, IndexError, ValueError) as error:
            raise Http2Error(errors.COMPRESSION_ERROR, "headers that cannot be read") from error
        ended = bool(flags & frames.END_STREAM)
        stream = self._streams.get(number)
        if stream is None:
            if self.client or number <= self._highest:
                self._must_be_known(number, "headers")
                return
            if (stream := self._accept(number)) is None:
                return
        if stream.remote_ended:
            raise Http2Error(errors.STREAM_CLOSED, f"headers on stream {number}, which has ended")
        if self.client and not ended and not stream.answered and dict(headers).get(b":status", b"").startswith(b"1"):
            return
        if stream.answered and not ended:
            raise Http2Error(errors.PROTOCOL_ERROR, f"headers in the middle of stream {number}")
        events.append(HeadersReceived(number, headers, stream.answered, ended))
        stream.answered = True
        if ended:
            self._remote_ended(number, stream)

    def _accept(self, number: int) -> _Stream | None:
        """A stream that the client opens, unless it has enough of them."""
        if number % 2 == 0:
            raise Http2Error(errors.PROTOCOL_ERROR, "a client's streams have odd numbers")
        self._highest = number
        if len(self._streams) >= self.limits.streams or self._leaving:
            self._out.control(frames.reset(number, errors.REFUSED_STREAM))
            self._count_reset()
            return None
        stream = self._streams[number] = _Stream(self._out.open(number), self.limits.window)
        return stream

    def _on_reset(self, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        code = frames.number(payload, "a reset")
        self._must_be_known(number, "a reset")
        if number in self._streams:
            self._forget(number)
            self._count_reset()
            events.append(StreamReset(number, code))

    def _on_settings(self, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        if number:
            raise Http2Error(errors.PROTOCOL_ERROR, "settings are about the connection")
        if flags & frames.ACK:
            return
        for name, value in frames.read_settings(payload):
            if name == frames.INITIAL_WINDOW_SIZE:
                if value > frames.LARGEST_WINDOW:
                    raise Http2Error(errors.FLOW_CONTROL_ERROR, "a window that is too large")
                self._out.first_window_is(value)
                self._widened = True
            elif name == frames.MAX_FRAME_SIZE:
                if not frames.FRAME_SIZE <= value < 1 << 24:
                    raise Http2Error(errors.PROTOCOL_ERROR, "a size of frames that cannot be")
                self._out.frame_size = min(value, 1 << 18)
            elif name == frames.HEADER_TABLE_SIZE:
                self._out.table_size_is(value)
            elif name == frames.MAX_CONCURRENT_STREAMS and self.client:
                self.peer_streams = value
        self._out.control(frames.frame(frames.SETTINGS, frames.ACK, 0))

    def _on_push(self, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        raise Http2Error(errors.PROTOCOL_ERROR, "pushes are not taken")

    def _on_ping(self, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        if number or len(payload) != 8:
            raise Http2Error(errors.FRAME_SIZE_ERROR, "a ping of a wrong form")
        if flags & frames.ACK:
            events.append(PingAnswered(payload))
        else:
            self._out.control(frames.frame(frames.PING, frames.ACK, 0, payload))

    def _on_go_away(self, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        if len(payload) < 8:
            raise Http2Error(errors.FRAME_SIZE_ERROR, "a farewell of a wrong length")
        last = frames.number(payload[:4], "a farewell") & frames.LARGEST_WINDOW
        self._leaving = True
        events.append(GoingAway(last, frames.number(payload[4:8], "a farewell"), payload[8:]))
        if self.client:
            for refused in [number for number in self._streams if number > last]:
                self._forget(refused)
                events.append(StreamReset(refused, errors.REFUSED_STREAM))

    def _on_window_update(self, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        increment = frames.number(payload, "a window") & frames.LARGEST_WINDOW
        self._must_be_known(number, "a window")
        if not increment:
            raise Http2Error(errors.PROTOCOL_ERROR, "a window that grows by nothing")
        self._out.widen(number, increment)
        self._widened = True

    # --- streams -----------------------------------------------------------------------------------------------------

    def _of(self, number: int) -> _Stream:
        stream = self._streams.get(number)
        if stream is None or stream.out.wants_end:
            raise StreamGone(f"the stream {number} has ended")
        return stream

    def _must_be_known(self, number: int, what: str) -> None:
        """Raise an error for a frame of a stream that was never opened; for one that is gone, it comes too late."""
        highest = self._next - 1 if self.client else self._highest
        if number > highest or (number and number % 2 == 0) or (not number and what != "a window"):
            raise Http2Error(errors.PROTOCOL_ERROR, f"{what} for a stream that does not exist: {number}")

    def _remote_ended(self, number: int, stream: _Stream) -> None:
        stream.remote_ended = True
        if stream.out.ended:
            self._finish(number)
        elif self.client:
            # A server that has answered wants no more of the request.
            self._forget(number)
            self._out.control(frames.reset(number, errors.CANCEL))

    def _finish(self, number: int) -> None:
        self._forget(number)
        self._resets = max(0, self._resets - 1)

    def _forget(self, number: int) -> None:
        self._streams.pop(number, None)
        self._out.forget(number)

    def _count_reset(self) -> None:
        self._resets += 1
        if self._resets > self.limits.resets:
            raise Http2Error(errors.ENHANCE_YOUR_CALM, "streams are opened and reset too often")
