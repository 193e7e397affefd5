"""Heads: cut at every byte they are the same, and what two parsers could read in two ways is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.api.http.errors import BadRequest, Http2Preface
from husk.api.http.limits import HttpLimits
from husk.api.http.parser import PREFACE, HeadParser, RequestHead

HEADS = [
    b"GET /_ping HTTP/1.1\r\nHost: docker\r\n\r\n",
    b"POST /containers/web/attach?stdin=1 HTTP/1.1\r\nHost: d\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n",
    b"POST /v1.41/exec/x/start HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n",
    b"PUT /x HTTP/1.1\r\nHost:\r\nTransfer-Encoding: Chunked\r\nExpect: 100-continue\r\n\r\n",
    b"HEAD http://docker/_ping?x HTTP/1.0\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nhost: \xc3\xa4 \t\r\nX-Empty:\r\n\r\n",
]


def facts(head: RequestHead) -> tuple[object, ...]:
    return head.method, head.target, head.is_1_1, head.headers, head.length, head.chunked, head.keep_alive


def parse(data: bytes, limits: HttpLimits | None = None) -> RequestHead:
    head = HeadParser(limits or HttpLimits()).feed(data)
    assert head is not None
    return head


@pytest.mark.parametrize("data", HEADS)
def test_a_head_cut_at_every_byte(data: bytes) -> None:
    whole = facts(parse(data))
    for cut in range(1, len(data)):
        parser = HeadParser(HttpLimits())
        assert parser.feed(data[:cut]) is None
        assert parser.begun
        head = parser.feed(data[cut:])
        assert head is not None and facts(head) == whole
        assert not parser.begun


@pytest.mark.parametrize("data", HEADS)
def test_a_head_byte_by_byte_and_what_follows_it(data: bytes) -> None:
    parser = HeadParser(HttpLimits())
    found = [parser.feed(data[at : at + 1]) for at in range(len(data))]
    assert found[:-1] == [None] * (len(data) - 1)
    assert found[-1] is not None
    again = parser.feed(data + b"behind")
    assert again is not None and facts(again) == facts(found[-1])
    assert parser.rest == b"behind"
    assert parser.rest == b""


@given(st.lists(st.sampled_from(HEADS), min_size=1, max_size=5), st.data())
def test_requests_behind_each_other_however_they_are_cut(heads: list[bytes], draw: st.DataObject) -> None:
    data = b"".join(heads)
    cuts = sorted(draw.draw(st.sets(st.integers(1, len(data) - 1), max_size=6)))
    parser = HeadParser(HttpLimits())
    found = []
    for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        piece = data[begin:end]
        while (head := parser.feed(piece)) is not None:
            found.append(facts(head))
            piece = b""
    assert found == [facts(parse(head)) for head in heads]


@given(st.binary(max_size=200))
def test_any_bytes_are_a_head_or_refused_or_waited_for(data: bytes) -> None:
    parser = HeadParser(HttpLimits())
    try:
        head = parser.feed(data)
    except BadRequest:
        return
    if head is not None:
        assert b"\r\n\r\n" in data


def test_what_a_head_says() -> None:
    head = parse(HEADS[2])
    assert (head.method, head.target, head.length, head.chunked) == (b"POST", b"/v1.41/exec/x/start", 2, False)
    assert head.headers[b"content-type"] == b"application/json"
    assert parse(HEADS[3]).chunked
    assert parse(HEADS[5]).headers == {b"host": b"\xc3\xa4", b"x-empty": b""}


@pytest.mark.parametrize(
    ("version", "connection", "kept"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"Connection: close\r\n", False),
        (b"1.1", b"Connection: Foo, Close\r\n", False),
        (b"1.1", b"Connection: keep-alive\r\n", True),
        (b"1.0", b"", False),
        (b"1.0", b"Connection: Keep-Alive\r\n", True),
    ],
)
def test_whether_another_request_may_follow(version: bytes, connection: bytes, kept: bool) -> None:
    head = parse(b"GET / HTTP/%b\r\nHost: x\r\n%b\r\n" % (version, connection))
    assert head.keep_alive is kept
    again = parse(b"GET / HTTP/%b\r\n%bHost: x\r\n\r\n" % (version, connection))
    assert again.keep_alive is kept


def test_of_a_header_that_is_repeated_the_first_counts() -> None:
    head = parse(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: a\r\ncontent-type: b\r\n\r\n")
    assert head.headers[b"content-type"] == b"a"


LINE = b"POST /x HTTP/1.1\r\nHost: x\r\n"
AMBIGUOUS = {
    "two lengths": LINE + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "the same length twice": LINE + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
    "a list of lengths": LINE + b"Content-Length: 1, 1\r\n\r\n",
    "a length and chunks": LINE + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "chunks and a length": LINE + b"Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
    "chunks twice": LINE + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    "chunks in HTTP/1.0": b"POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "a length with a sign": LINE + b"Content-Length: +1\r\n\r\n",
    "a negative length": LINE + b"Content-Length: -1\r\n\r\n",
    "a hexadecimal length": LINE + b"Content-Length: 0x1\r\n\r\n",
    "an empty length": LINE + b"Content-Length:\r\n\r\n",
    "too long a length": LINE + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n",
    "two hosts": LINE + b"Host: y\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "a folded line": LINE + b"X: a\r\n b\r\n\r\n",
    "a line folded with a tab": LINE + b"X: a\r\n\tb\r\n\r\n",
    "a folded first line": b"GET / HTTP/1.1\r\n Host: x\r\nHost: x\r\n\r\n",
    "a space before the colon": LINE + b"Content-Length : 1\r\n\r\n",
    "a tab before the colon": LINE + b"Content-Length\t: 1\r\n\r\n",
    "a line without a colon": LINE + b"X\r\n\r\n",
    "a line without a name": LINE + b": x\r\n\r\n",
    "a bare LF": LINE + b"X: a\nY: b\r\n\r\n",
    "a bare CR": LINE + b"X: a\rY: b\r\n\r\n",
    "a CR before CR LF": LINE + b"X: a\r\r\nY: b\r\n\r\n",
    "a bare LF behind the first line": b"GET / HTTP/1.1\nHost: x\r\n\r\n",
    "only LFs": b"GET / HTTP/1.1\nHost: x\n\n",
    "a NUL": LINE + b"X: a\0b\r\n\r\n",
    "a NUL in a name": LINE + b"X\0: a\r\n\r\n",
    "a control character": LINE + b"X: a\x01b\r\n\r\n",
    "DEL": LINE + b"X: a\x7fb\r\n\r\n",
    "a vertical tab before chunked": LINE + b"Transfer-Encoding: \x0bchunked\r\n\r\n",
    "a letter beyond ASCII in a name": LINE + b"X\xe4: a\r\n\r\n",
    "an empty line first": b"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "two spaces": b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a tab in the first line": b"GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n",
    "a space in the target": b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
    "no target": b"GET HTTP/1.1\r\nHost: x\r\n\r\n",
    "no version": b"GET /\r\n\r\n",
    "another protocol": b"GET / HTPP/1.1\r\nHost: x\r\n\r\n",
    "a method that nobody knows": b"FOO / HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
    "a word": b"garbage\r\n\r\n",
}


@pytest.mark.parametrize("data", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_what_could_be_read_in_two_ways_is_refused(data: bytes) -> None:
    with pytest.raises(BadRequest) as refused:
        parse(data)
    assert refused.value.status == 400
    # However it comes, it is refused before anything is made of it.
    for cut in range(1, len(data)):
        parser = HeadParser(HttpLimits())
        with pytest.raises(BadRequest):
            assert parser.feed(data[:cut]) is None
            assert parser.feed(data[cut:]) is None
            raise AssertionError(f"cut at {cut} it was taken for the beginning of a head")


@pytest.mark.parametrize("value", [b"gzip, chunked", b"identity", b"chunked, chunked", b"xchunked", b""])
def test_other_encodings_are_not_served(value: bytes) -> None:
    with pytest.raises(BadRequest) as refused:
        parse(LINE + b"Transfer-Encoding: " + value + b"\r\n\r\n")
    assert refused.value.status in (400, 501)


@pytest.mark.parametrize("version", [b"9.9", b"2.0", b"0.9", b"1.2", b"1"])
def test_other_versions_are_not_served(version: bytes) -> None:
    with pytest.raises(BadRequest) as refused:
        parse(b"GET / HTTP/" + version + b"\r\nHost: x\r\n\r\n")
    assert refused.value.status == 505


@pytest.mark.parametrize("cut", range(1, len(PREFACE)))
def test_http_2_is_recognised(cut: int) -> None:
    parser = HeadParser(HttpLimits())
    with pytest.raises(Http2Preface):
        assert parser.feed(PREFACE[:cut]) is None
        parser.feed(PREFACE[cut:])


def test_who_speaks_something_else_is_told_at_its_first_bytes() -> None:
    for data in (b"\x16", b"\0", b"GET\0", b"GET / X", b"\r", b"\n", b" ", b"GET / HTTP/1.1\r\nA\0"):
        with pytest.raises(BadRequest):
            HeadParser(HttpLimits()).feed(data)


def test_a_head_has_a_largest_size() -> None:
    limits = HttpLimits(head_size=200)
    line = b"GET / HTTP/1.1\r\nHost: x\r\nX: "
    fits = line + b"a" * (200 - len(line) - 4) + b"\r\n\r\n"
    assert len(fits) == 200 and parse(fits, limits)
    for data in (fits[:-4] + b"a\r\n\r\n", line + b"a" * 200, b"GET /" + b"a" * 200):
        with pytest.raises(BadRequest) as refused:
            parse(data, limits)
        assert refused.value.status == 431


def test_a_head_has_a_largest_number_of_lines() -> None:
    limits = HttpLimits(head_lines=3)
    assert parse(LINE + b"A: 1\r\nA: 2\r\n\r\n", limits)
    with pytest.raises(BadRequest) as refused:
        parse(LINE + b"A: 1\r\nA: 2\r\nA: 3\r\n\r\n", limits)
    assert refused.value.status == 431


def test_a_path_and_a_query_have_a_largest_size() -> None:
    end = b" HTTP/1.1\r\nHost: x\r\n\r\n"
    limits = HttpLimits(path_size=8, parameters=3)
    assert parse(b"GET /2345678?a&b&c" + end, limits)
    for target, status in ((b"/23456789", 414), (b"http://host/23456789", 414), (b"/?a&b&c&", 400)):
        with pytest.raises(BadRequest) as refused:
            parse(b"GET " + target + end, limits)
        assert refused.value.status == status
