"""Which requests have their body held, and what the parser then sees of them."""

import pytest

from husk.api.uploads import request_with_held_body

LINE = b"PUT /v1.51/containers/web/archive?path=%2Ftmp HTTP/1.1\r\n"


@pytest.mark.parametrize(
    ("framing", "length"),
    [(b"Transfer-Encoding: chunked", None), (b"transfer-encoding:  CHUNKED ", None), (b"Content-Length: 12", 12)],
)
@pytest.mark.parametrize("begun", [b"", b"5\r\nhello\r\n"])
def test_an_archive_on_its_way_into_a_container(framing: bytes, length: int | None, begun: bytes) -> None:
    held = request_with_held_body(LINE + b"Host: x\r\n" + framing + b"\r\nUser-Agent: y\r\n\r\n" + begun)
    assert held == (LINE + b"Host: x\r\nUser-Agent: y\r\n\r\n", begun, length)


def test_a_path_without_a_version() -> None:
    assert request_with_held_body(LINE.replace(b"/v1.51", b"") + b"Content-Length: 1\r\n\r\n") is not None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        LINE,
        LINE + b"Host: x\r\n\r\n",
        LINE + b"Content-Length: 1\r\n",
        LINE + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        LINE + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        LINE + b"Content-Length: 1\r\nExpect: 100-continue\r\n\r\n",
        LINE + b"Content-Length: -1\r\n\r\n",
        LINE + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n",
        LINE + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        LINE.replace(b"PUT", b"GET") + b"Content-Length: 1\r\n\r\n",
        LINE.replace(b"archive", b"other") + b"Content-Length: 1\r\n\r\n",
        LINE.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Content-Length: 1\r\n\r\n",
    ],
)
def test_anything_else_is_the_parsers(data: bytes) -> None:
    assert request_with_held_body(data) is None
