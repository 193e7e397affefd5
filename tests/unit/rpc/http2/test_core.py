"""Two cores talk to each other, and one to peers that break the rules: nothing makes it raise."""

import pytest
from hpack import Encoder
from hypothesis import given
from hypothesis import strategies as st

from husk.rpc.http2 import errors, frames
from husk.rpc.http2.core import Http2, PeerLimits
from husk.rpc.http2.errors import StreamGone
from husk.rpc.http2.events import (
    ConnectionEnded,
    DataReceived,
    Event,
    GoingAway,
    HeadersReceived,
    PingAnswered,
    StreamReset,
    Writable,
)
from tests.support.work import lines_run

REQUEST = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/a/b"), (b":authority", b"x")]
ANSWER = [(b":status", b"200")]
TRAILERS = [(b"grpc-status", b"0")]


def talk(one: Http2, other: Http2, step: int = 1 << 20) -> list[Event]:
    """Send what one has to say to the other, in pieces."""
    data = b"".join(one.outgoing())
    return [event for start in range(0, len(data), step) for event in other.feed(data[start : start + step])]


def pair(limits: PeerLimits | None = None) -> tuple[Http2, Http2]:
    client, server = Http2(client=True), Http2(client=False, limits=limits)
    talk(client, server)
    talk(server, client)
    talk(client, server)
    return client, server


def block(headers: list[tuple[bytes, bytes]]) -> bytes:
    return bytes(Encoder().encode(headers))


def opened(number: int = 1, flags: int = frames.END_HEADERS) -> bytes:
    return frames.frame(frames.HEADERS, flags, number, block(REQUEST))


def greeted(limits: PeerLimits | None = None) -> Http2:
    server = Http2(client=False, limits=limits)
    server.feed(frames.PREFACE + frames.settings({}))
    server.outgoing()
    return server


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
def test_a_call_from_its_beginning_to_its_end(step: int) -> None:
    client, server = Http2(client=True), Http2(client=False)
    number = client.open(REQUEST)
    client.send(number, b"question")
    client.end(number)
    request, *data = talk(client, server, step)
    assert request == HeadersReceived(1, REQUEST, False, False)
    assert b"".join(event.data for event in data if isinstance(event, DataReceived)) == b"question"
    server.send_headers(number, ANSWER)
    server.send(number, b"answer")
    server.end(number, TRAILERS)
    told = talk(server, client, step)
    answer, *received, trailers = [event for event in told if isinstance(event, HeadersReceived | DataReceived)]
    assert answer == HeadersReceived(1, ANSWER, False, False)
    assert received == [DataReceived(1, b"answer", 6, False)]
    assert trailers == HeadersReceived(1, TRAILERS, True, True)
    assert client.stream_count == server.stream_count == 0


def test_a_server_that_answers_early_wants_no_more_of_the_request() -> None:
    client, server = pair()
    number = client.open(REQUEST)
    talk(client, server)
    server.send_headers(number, ANSWER)
    server.end(number, TRAILERS)
    events = talk(server, client)
    assert [type(event) for event in events] == [HeadersReceived, HeadersReceived]
    assert server.stream_count == client.stream_count == 0
    with pytest.raises(StreamGone):
        client.send(number, b"late")
    assert talk(client, server) == []


def test_more_than_a_window_is_sent_only_when_the_data_was_taken_in() -> None:
    client, server = pair(PeerLimits(window=100_000))
    number = client.open(REQUEST)
    client.send(number, b"x" * 250_000)
    client.end(number)
    received = 0
    rounds = 0
    while received < 250_000:
        events = [event for event in talk(client, server) if isinstance(event, DataReceived)]
        got = sum(len(event.data) for event in events)
        assert got <= 100_000
        received += got
        server.acknowledge(number, got)
        talk(server, client)
        rounds += 1
    assert rounds >= 3


def test_a_stream_that_nobody_reads_does_not_stop_the_others() -> None:
    client, server = pair(PeerLimits(window=1 << 20))
    unread = [client.open(REQUEST) for _ in range(30)]
    for number in unread:
        client.send(number, bytes(1 << 20))
        talk(client, server)
        talk(server, client)
    last = client.open(REQUEST)
    client.send(last, b"heard")
    assert DataReceived(last, b"heard", 5, False) in talk(client, server)


def test_a_peer_that_sends_more_than_its_window_is_sent_away() -> None:
    server = greeted(PeerLimits(window=20_000))
    events = server.feed(opened() + frames.frame(frames.DATA, 0, 1, bytes(16384)) * 2)
    assert isinstance(events[-1], ConnectionEnded) and events[-1].code == errors.FLOW_CONTROL_ERROR
    assert server.over


def test_streams_above_the_limit_are_refused_one_by_one() -> None:
    server = greeted(PeerLimits(streams=2))
    server.feed(opened(1) + opened(3))
    assert server.feed(opened(5)) == []
    assert frames.reset(5, errors.REFUSED_STREAM) in b"".join(server.outgoing())
    assert server.stream_count == 2


def test_streams_opened_and_reset_without_end_end_the_connection() -> None:
    server = greeted(PeerLimits(resets=50))
    for number in range(1, 99, 2):
        server.feed(opened(number) + frames.reset(number, errors.CANCEL))
    assert not server.over
    last: list[Event] = []
    for number in range(99, 110, 2):
        last += server.feed(opened(number) + frames.reset(number, errors.CANCEL))
    assert isinstance(last[-1], ConnectionEnded) and last[-1].code == errors.ENHANCE_YOUR_CALM


def test_headers_without_end_are_cut_off() -> None:
    server = greeted(PeerLimits(header_frames=4))
    server.feed(opened(1, 0))
    events: list[Event] = []
    for _ in range(5):
        events += server.feed(frames.frame(frames.CONTINUATION, 0, 1))
    assert isinstance(events[-1], ConnectionEnded)


def test_headers_that_grow_when_they_are_read_are_refused() -> None:
    server = greeted()
    encoder = Encoder()
    first = bytes(encoder.encode([*REQUEST, (b"x", b"y" * 4000)]))
    server.feed(frames.frame(frames.HEADERS, frames.END_HEADERS, 1, first))
    bomb = bytes(encoder.encode([(b"x", b"y" * 4000)])) * 100
    [ended] = server.feed(frames.frame(frames.HEADERS, frames.END_HEADERS, 3, bomb))
    assert isinstance(ended, ConnectionEnded) and ended.code == errors.ENHANCE_YOUR_CALM


@pytest.mark.parametrize(
    "bad",
    [
        frames.frame(frames.DATA, 0, 0, b"x"),
        frames.frame(frames.DATA, 0, 7, b"x"),
        frames.frame(frames.HEADERS, frames.END_HEADERS, 2, block(REQUEST)),
        frames.frame(frames.HEADERS, frames.END_HEADERS, 1, b"\xff\xff\xff\xff\xff"),
        frames.frame(frames.CONTINUATION, 0, 1),
        frames.frame(frames.PUSH_PROMISE, 0, 1),
        frames.frame(frames.SETTINGS, 0, 1),
        frames.frame(frames.SETTINGS, 0, 0, b"12345"),
        frames.settings({frames.INITIAL_WINDOW_SIZE: 1 << 31}),
        frames.settings({frames.MAX_FRAME_SIZE: 1}),
        frames.frame(frames.PING, 0, 0, b"short"),
        frames.frame(frames.GOAWAY, 0, 0, b"short"),
        frames.window_update(0, 0),
        frames.window_update(0, frames.LARGEST_WINDOW),
        frames.window_update(9, 1),
        frames.reset(9, 0),
        opened() + opened(),
        opened(1, frames.END_HEADERS | frames.END_STREAM) + frames.frame(frames.DATA, 0, 1, b"x"),
        opened(1, 0) + frames.frame(frames.PING, 0, 0, bytes(8)),
    ],
)
def test_what_breaks_the_rules_ends_the_connection_with_a_farewell(bad: bytes) -> None:
    server = greeted()
    events = server.feed(bad)
    assert isinstance(events[-1], ConnectionEnded)
    assert any(one[0] == frames.GOAWAY for one in frames.FrameReader().feed(b"".join(server.outgoing())))
    assert server.feed(opened()) == []


def test_a_connection_that_does_not_begin_with_http_2_is_refused_at_its_first_wrong_byte() -> None:
    assert isinstance(Http2(client=False).feed(b"GET")[0], ConnectionEnded)


def test_settings_and_pings_are_answered_and_answers_are_told() -> None:
    server = greeted()
    server.feed(frames.settings({frames.HEADER_TABLE_SIZE: 0}) + frames.frame(frames.PING, 0, 0, b"12345678"))
    answers = list(frames.FrameReader().feed(b"".join(server.outgoing())))
    assert answers == [(frames.SETTINGS, 1, 0, b""), (frames.PING, 1, 0, b"12345678")]
    data = server.ping()
    assert server.feed(frames.frame(frames.PING, frames.ACK, 0, data)) == [PingAnswered(data)]


def test_a_farewell_ends_what_the_peer_has_not_looked_at() -> None:
    client, _ = pair()
    first, second = client.open(REQUEST), client.open(REQUEST)
    events = client.feed(frames.go_away(first, 0, b"bye"))
    assert events == [GoingAway(first, 0, b"bye"), StreamReset(second, errors.REFUSED_STREAM)]
    with pytest.raises(StreamGone):
        client.open(REQUEST)


def test_a_reset_is_told_and_what_comes_too_late_is_ignored() -> None:
    client, server = pair()
    number = client.open(REQUEST)
    talk(client, server)
    server.reset(number, errors.CANCEL)
    client.send(number, b"late")
    late = b"".join(client.outgoing())
    assert talk(server, client) == [StreamReset(number, errors.CANCEL)]
    assert server.feed(late) == []


def test_answers_that_nobody_reads_are_counted() -> None:
    server = greeted()
    server.feed(frames.frame(frames.PING, 0, 0, bytes(8)) * 1000)
    assert server.backlog == 17 * 1000
    server.outgoing()
    assert server.backlog == 0


junk = st.one_of(
    st.binary(max_size=60),
    st.builds(
        frames.frame, st.integers(0, 11), st.integers(0, 255), st.sampled_from([0, 1, 2, 3, 5]), st.binary(max_size=30)
    ),
    st.just(opened(1)),
    st.just(opened(3)),
    st.builds(frames.window_update, st.sampled_from([0, 1, 3]), st.integers(1, 1 << 20)),
    st.builds(frames.reset, st.sampled_from([1, 3]), st.integers(0, 15)),
)


@given(st.lists(junk, max_size=12), st.integers(1, 40), st.booleans())
def test_nothing_that_a_peer_sends_makes_it_raise(pieces: list[bytes], step: int, client: bool) -> None:
    http = Http2(client=client)
    if client:
        http.open(REQUEST)
        http.feed(frames.settings({}))
    else:
        http.feed(frames.PREFACE + frames.settings({}))
    data = b"".join(pieces)
    for start in range(0, len(data), step):
        for event in http.feed(data[start : start + step]):
            if isinstance(event, DataReceived):
                http.acknowledge(event.stream, event.credit)
        http.outgoing()


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(
            frames.frame(frames.SETTINGS, 0, 0, bytes([0, 4, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0]) * 50), id="settings"
        ),
        pytest.param(frames.window_update(0, 1), id="window of the connection"),
    ],
)
@pytest.mark.parametrize("waits", [b"", b"x"])
def test_what_a_peer_says_of_all_streams_costs_the_same_however_many_they_are(said: bytes, waits: bytes) -> None:
    def work(streams: int) -> int:
        server = greeted(PeerLimits(streams=1000))
        server.feed(frames.settings({frames.INITIAL_WINDOW_SIZE: 0}))
        for number in range(1, 2 * streams, 2):
            server.feed(opened(number))
            server.send(number, waits)
        server.outgoing()
        return lines_run(lambda: server.feed(said * 20))

    assert work(500) < work(5) + 200


def test_a_window_that_changes_for_all_streams_changes_for_those_that_wait() -> None:
    client, server = pair()
    server.feed(frames.settings({frames.INITIAL_WINDOW_SIZE: 0}))
    numbers = [client.open(REQUEST) for _ in range(3)]
    talk(client, server)
    for number in numbers:
        server.send_headers(number, ANSWER)
        server.send(number, b"answer")
        server.end(number)
    assert not [event for event in talk(server, client) if isinstance(event, DataReceived)]
    assert server.feed(frames.settings({frames.INITIAL_WINDOW_SIZE: 3})) == [Writable()]
    assert [event.data for event in talk(server, client) if isinstance(event, DataReceived)] == [b"ans"] * 3
    # Less than has been sent already: the next three bytes only bring it back to nothing.
    server.feed(frames.settings({frames.INITIAL_WINDOW_SIZE: 0}))
    server.feed(frames.window_update(numbers[1], 3))
    assert talk(server, client) == []
    server.feed(frames.window_update(numbers[1], 100))
    assert [event for event in talk(server, client) if isinstance(event, DataReceived)] == [
        DataReceived(numbers[1], b"wer", 3, True)
    ]


def test_a_flood_of_small_frames_is_read_in_turns() -> None:
    server = greeted()
    turns = list(server.feed_in_turns(frames.settings({frames.INITIAL_WINDOW_SIZE: 1}) * 5000 + opened()))
    assert len(turns) == 6 and [type(event) for event in turns[-1]] == [HeadersReceived]
    assert b"".join(server.outgoing()) == frames.frame(frames.SETTINGS, frames.ACK, 0) * 5000


def test_nothing_is_read_after_a_farewell_between_turns() -> None:
    server = greeted()
    turns = server.feed_in_turns(frames.settings({}) * 5000)
    next(turns)
    server.leave()
    server.over = True
    assert list(turns) == []
