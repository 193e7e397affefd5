"""The parts of a request: its path without percent signs, its query, its headers."""

import os
from urllib.parse import unquote_to_bytes

import pytest

from husk.api.http.channel import Channel
from husk.api.http.errors import BadRequest
from husk.api.http.limits import HttpLimits
from husk.api.http.parser import HeadParser
from husk.api.http.request import Request


def request(target: bytes, headers: bytes = b"") -> Request:
    head = HeadParser(HttpLimits()).feed(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n")
    assert head is not None
    return Request(head, Channel())


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (b"/_ping", "/_ping"),
        (b"/images/a%2Fb:c/json?x=/y", "/images/a/b:c/json"),
        (b"/%C3%A4", "/ä"),
        (b"/%FF", "/\udcff"),
        (b"/%zz%", "/%zz%"),
        (b"http://docker/_ping", "/_ping"),
        (b"http://docker", "/"),
        (b"*", "*"),
    ],
)
def test_paths(target: bytes, path: str) -> None:
    assert request(target.replace(b"*", b"/*") if target == b"*" else target).path == path.replace("*", "/*")


def test_queries() -> None:
    query = request(b"/x?a=1&b=&c&a=2&d=%C3%A4+%26&=&&f=a;b").query
    assert [query.get(name) for name in "abcdf"] == ["1", "", "", "ä &", "a;b"]
    assert query.getall("a") == ["1", "2"]
    assert query.getall("nothing") == []
    assert ("b" in query, "z" in query) == (True, False)
    assert query.get("z", "default") == "default"
    assert not request(b"/x").query.getall("a")


@pytest.mark.parametrize("value", [b"%FF", b"a%ED%A0%80b", b"%C0%AF", b"%F5%80%80%80"])
def test_what_is_no_text_is_refused_where_text_is_read(value: bytes) -> None:
    query = request(b"/x?a=1&a=" + value + b"&path=" + value + b"&%FF=1").query
    assert query.get("a") == "1"
    for read in (lambda: query.get("path"), lambda: query.getall("a")):
        with pytest.raises(BadRequest, match=r"invalid query parameter '(a|path)': its value is not UTF-8"):
            read()
    assert os.fsencode(query.file_name("path")) == unquote_to_bytes(value)


def test_headers() -> None:
    found = request(b"/", b"X-Registry-Auth: one\r\nx-registry-auth: two\r\nEmpty:\r\n")
    assert found.header("x-registry-auth") == "one"
    assert (found.has("empty"), found.header("empty", "default")) == (True, "")
    assert (found.has("other"), found.header("other", "default")) == (False, "default")


def test_of_repeated_headers_the_first_counts_and_all_can_be_had() -> None:
    asked = request(b"/session", b"X-Method: a\r\nX-Method: b \r\nX-Other: c\r\n")
    assert asked.header("x-method") == "a"
    assert asked.all_headers() == {"host": ["x"], "x-method": ["a", "b"], "x-other": ["c"]}


@pytest.mark.parametrize("given", [b"a", b"3f2-A.b_c", b"x" * 64])
def test_a_sane_id_of_the_client_is_taken_over(given: bytes) -> None:
    asked = request(b"/", b"X-Request-ID: " + given + b"\r\n")
    assert (asked.id, asked.id_field) == (given.decode(), b"X-Request-Id: " + given + b"\r\n")


@pytest.mark.parametrize("given", [b"", b"x" * 65, b"a b", b"a;b", b'"', b"\xff"])
def test_other_ids_are_replaced(given: bytes) -> None:
    asked = request(b"/", b"X-Request-Id: " + given + b"\r\n")
    assert asked.id != given.decode(errors="replace")
    assert set(asked.id) <= set("0123456789abcdef-")


def test_every_request_has_an_id_of_its_own() -> None:
    assert len({request(b"/").id for _ in range(100)}) == 100
