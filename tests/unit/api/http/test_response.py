"""Answers as they travel."""

from http import HTTPStatus

import pytest

from husk.api.http.channel import Channel
from husk.api.http.limits import HttpLimits
from husk.api.http.parser import HeadParser
from husk.api.http.request import Request
from husk.api.http.response import STATUS_LINES, Response, fields

DATE = b"Date: now\r\n"


def request(method: bytes = b"GET", version: bytes = b"1.1") -> Request:
    head = HeadParser(HttpLimits()).feed(method + b" / HTTP/" + version + b"\r\nHost: x\r\n\r\n")
    assert head is not None
    return Request(head, Channel())


def sent(response: Response, asked: Request, keep_alive: bool = True) -> bytes:
    """The answer, without the request's id, which must be in it once."""
    data = b"".join(response.encode(asked, DATE, keep_alive))
    assert data.count(asked.id_field) == 1 and data.count(b"X-Request-Id") == 1
    return data.replace(asked.id_field, b"")


def test_a_short_answer_is_one_piece_and_a_long_one_is_not_copied() -> None:
    short = Response(200, b"hi", fields({"A": "b"}))
    assert short.encode(request(), DATE, True)[1] == b""
    assert sent(short, request()) == b"HTTP/1.1 200 OK\r\nA: b\r\nDate: now\r\nContent-Length: 2\r\n\r\nhi"
    body = bytes(1 << 20)
    head, rest = Response(200, body).encode(request(), DATE, True)
    assert head.endswith(b"Content-Length: 1048576\r\n\r\n") and rest is body


@pytest.mark.parametrize(
    ("response", "method", "version", "keep_alive", "wanted"),
    [
        (Response(200, b"hi"), b"HEAD", b"1.1", True, b"HTTP/1.1 200 OK\r\nDate: now\r\nContent-Length: 2\r\n\r\n"),
        (Response(204), b"GET", b"1.1", True, b"HTTP/1.1 204 No Content\r\nDate: now\r\n\r\n"),
        (Response(304, b"x"), b"GET", b"1.1", True, b"HTTP/1.1 304 Not Modified\r\nDate: now\r\n\r\n"),
        (Response(299), b"GET", b"1.1", True, b"HTTP/1.1 299 \r\nDate: now\r\nContent-Length: 0\r\n\r\n"),
        (
            Response(409, b"no"),
            b"GET",
            b"1.1",
            False,
            b"HTTP/1.1 409 Conflict\r\nDate: now\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno",
        ),
        (
            Response(200, b"hi"),
            b"GET",
            b"1.0",
            True,
            b"HTTP/1.0 200 OK\r\nDate: now\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi",
        ),
    ],
)
def test_forms(response: Response, method: bytes, version: bytes, keep_alive: bool, wanted: bytes) -> None:
    assert sent(response, request(method, version), keep_alive) == wanted


@pytest.mark.parametrize("value", ["a\r\nB: c", "a\nb", "a\rb", "a\0b"])
def test_a_header_is_one_line(value: str) -> None:
    with pytest.raises(ValueError, match="no header"):
        fields({"A": value})


def test_statuses_are_told_in_the_words_of_the_standard() -> None:
    told = {status: line.decode() for status, line in STATUS_LINES.items()}
    assert told[404] == "HTTP/1.1 404 Not Found\r\n"
    renamed = {413, 414, 416, 422}  # newer versions of Python, as newer standards, call them something else
    assert all(told[status] == f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n" for status in told.keys() - renamed)


def test_an_id_of_the_client_stands_in_its_answer() -> None:
    head = HeadParser(HttpLimits()).feed(b"GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: deploy-17\r\n\r\n")
    assert head is not None
    assert b"\r\nX-Request-Id: deploy-17\r\n" in Response(200, b"hi").encode(Request(head, Channel()), DATE, True)[0]
