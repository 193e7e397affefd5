"""The head of a request: where it ends, and what it says. Without I/O: bytes in, heads out.

llhttp (`httptools`) reads the head. It gets a head only when the whole of it is here and has the one form that all
parsers read alike: lines end with CR LF, no line is folded, no space before a colon, no control characters. Whatever
could be read in two ways by us and by a proxy before us is refused: two lengths, a length beside chunks, two hosts.
"""

import re

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from husk.api.http.errors import BadRequest, Http2Preface
from husk.api.http.limits import HttpLimits
from husk.text.patterns import pattern

_END = b"\r\n\r\n"
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]"
_REQUEST_LINE = rb"%b++ [\x21-\x7e\x80-\xff]++ HTTP/1\.[01]\r\n" % _TOKEN
_HEADER_LINE = rb"%b++:[\t\x20-\x7e\x80-\xff]*+\r\n" % _TOKEN
_HEAD = pattern(rb"%b(?:%b)*+\r\n" % (_REQUEST_LINE, _HEADER_LINE))
_FIRST_LINE = pattern(_REQUEST_LINE)
# What can become a request line. A look at its first bytes tells whoever speaks another protocol at once.
_BEGINNING = pattern(rb"%b++(?: (?:[\x21-\x7e\x80-\xff]++(?: [HTP/0-9.]*+\r?)?)?)?" % _TOKEN)
_LOOK = 64
_STRAY = pattern(rb"(?<!\r)\n|\r(?=[^\n])|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# The beginning of HTTP/2 without an upgrade.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# What a message may have only one of: with two, everybody picks another.
_ONCE = frozenset({b"content-length", b"transfer-encoding", b"host"})
_LONGEST_NUMBER = 18
# How long, and how many, the heads are that are remembered; never those with credentials, or that come only once.
_SHORT = 512
_MOST_KNOWN = 256
_PASSING = pattern(rb"auth|cookie|secret|token|request-id|traceparent", re.IGNORECASE)
# What a client may call its request: it is written to logs as it is.
_SANE_ID = pattern(rb"[A-Za-z0-9._-]{1,64}")
_CLOSE, _KEEP_ALIVE = b"close", b"keep-alive"


class RequestHead:
    """The head of one request. Names of headers are in lower case; of repeated ones the first counts, as with Go."""

    __slots__ = (
        "chunked", "expect", "has_body", "headers", "is_1_1", "is_head", "keep_alive", "length", "method", "own_id",
        "raw_path", "raw_query", "repeated", "target",
    )  # fmt: skip

    def __init__(
        self,
        method: bytes,
        target: bytes,
        is_1_1: bool,
        headers: dict[bytes, bytes],
        repeated: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        self.method = method
        self.target = target
        self.is_1_1 = is_1_1
        self.headers = headers
        # The second and later ones of a name.
        self.repeated = repeated
        # How long its body is; 0 without one, and also with chunks.
        self.length = 0
        self.chunked = False
        self.has_body = False
        self.keep_alive = is_1_1
        self.is_head = method == b"HEAD"
        # What the client calls its request; empty where it has no name for it, or none that can stand in a log.
        given = headers.get(b"x-request-id", b"")
        self.own_id = given if given and _SANE_ID.fullmatch(given) else b""
        self.expect = headers[b"expect"].lower() if b"expect" in headers else b""
        self.raw_path, _, self.raw_query = (target if target[:1] == b"/" else _origin_form(target)).partition(b"?")


class HeadParser:
    """Feed it bytes until it gives a head; `rest` is what came behind it."""

    def __init__(self, limits: HttpLimits, known: dict[bytes, RequestHead] | None = None) -> None:
        """`known` are short heads that others have read before: clients send the same few again and again."""
        self._limits = limits
        self._known: dict[bytes, RequestHead] = {} if known is None else known
        self._data = b""
        self._checked = 0
        self._parser: HttpRequestParser | None = None
        self._target = b""
        self._headers: dict[bytes, bytes] = {}
        self._repeated: list[tuple[bytes, bytes]] = []
        self._twice = b""

    @property
    def begun(self) -> bool:
        """True while a part of a head is here."""
        return bool(self._data)

    @property
    def rest(self) -> bytes:
        """The bytes that are here and were not taken for a head; they are the caller's now."""
        data, self._data, self._checked = self._data, b"", 0
        return data

    def feed(self, data: bytes) -> RequestHead | None:
        """The next head, if all of it is here. BadRequest when none can come of this."""
        if self._data:
            data = self._data + data
        elif len(data) <= _SHORT and (known := self._known.get(data)) is not None:
            return known
        end = data.find(_END, max(self._checked - 3, 0))
        if end < 0:
            self._keep(data)
            return None
        end += 4
        if end > self._limits.head_size or data.count(b"\r\n", 0, end) - 2 > self._limits.head_lines:
            raise _too_large()
        self._checked = 0
        if end == len(data):
            self._data = b""
            head = self._parse(data)
            if end <= _SHORT and not head.has_body and head.keep_alive and _PASSING.search(data) is None:
                if len(self._known) >= _MOST_KNOWN:
                    self._known.clear()
                self._known[data] = head
            return head
        self._data = data[end:]
        return self._parse(data[:end])

    def _keep(self, data: bytes) -> None:
        """The beginning of a head waits for the rest, unless it is none."""
        first_line = data.find(b"\r\n")
        if first_line >= 0:
            if self._checked <= first_line + 1 and _FIRST_LINE.match(data) is None and not PREFACE.startswith(data):
                raise _wrong_line(data)
        elif self._checked < _LOOK and data and _BEGINNING.fullmatch(data[:_LOOK]) is None:
            raise _wrong_line(data)
        if _STRAY.search(data, max(self._checked - 1, 0)) is not None:
            raise BadRequest("malformed header: a stray line end or control character")
        if len(data) > self._limits.head_size:
            raise _too_large()
        self._data = data
        self._checked = len(data)

    def _parse(self, data: bytes) -> RequestHead:
        if _HEAD.fullmatch(data) is None:
            raise _wrong_form(data)
        parser = self._parser
        if parser is None:
            parser = self._parser = HttpRequestParser(self)
        headers: dict[bytes, bytes] = {}
        self._headers = headers
        self._repeated = []
        self._twice = b""
        try:
            parser.feed_data(data)
        except HttpParserUpgrade:
            self._parser = None
        except HttpParserError as error:
            raise BadRequest(f"malformed request: {error}") from None
        if self._twice:
            raise BadRequest(f"malformed request: two headers {self._twice.decode()}")
        is_1_1 = parser.get_http_version() == "1.1"
        head = RequestHead(parser.get_method(), self._target, is_1_1, headers, tuple(self._repeated))
        if len(head.raw_path) > self._limits.path_size:
            raise BadRequest("Request-URI Too Long", 414)
        if head.raw_query.count(b"&") >= self._limits.parameters:
            raise BadRequest("malformed request: too many parameters")
        if b"content-length" in headers or b"transfer-encoding" in headers:
            # It waits for the body, which others read.
            self._parser = None
            _frame(head)
        if head.is_1_1 and b"host" not in headers:
            raise BadRequest("missing required Host header")
        if (connection := headers.get(b"connection")) is not None:
            words = connection.lower()
            head.keep_alive = _CLOSE not in words if head.is_1_1 else _KEEP_ALIVE in words
        if not head.keep_alive:
            self._parser = None  # it takes nothing more
        return head

    # what llhttp calls

    def on_url(self, target: bytes) -> None:
        self._target = target

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name not in self._headers:
            self._headers[name] = value.rstrip(b" \t")
        elif name in _ONCE:
            self._twice = name
        else:
            self._repeated.append((name, value.rstrip(b" \t")))


def _frame(head: RequestHead) -> None:
    """Set the body's length on the head, or that it comes in chunks. BadRequest where the head leaves that unclear."""
    encoding, length = head.headers.get(b"transfer-encoding"), head.headers.get(b"content-length")
    if encoding is not None:
        if length is not None:
            raise BadRequest("malformed request: Content-Length and Transfer-Encoding")
        if not head.is_1_1:
            raise BadRequest("malformed request: Transfer-Encoding in HTTP/1.0")
        if encoding.lower() != b"chunked":
            raise BadRequest("unsupported transfer encoding", 501)
        head.chunked = head.has_body = True
    elif length is not None:
        if not length.isdigit() or len(length) > _LONGEST_NUMBER:
            raise BadRequest("malformed request: bad Content-Length")
        head.length = int(length)
        head.has_body = head.length > 0


def _origin_form(target: bytes) -> bytes:
    """The path and query of a target that names a host too, as a client of a proxy writes it."""
    scheme, separator, rest = target.partition(b"://")
    if not separator or not scheme.isalpha():
        return target
    slash = rest.find(b"/")
    return rest[slash:] if slash >= 0 else b"/"


def _too_large() -> BadRequest:
    return BadRequest("Request Header Fields Too Large", 431)


def _wrong_form(data: bytes) -> BadRequest:
    return _wrong_line(data) if _FIRST_LINE.match(data) is None else BadRequest("malformed header line")


def _wrong_line(data: bytes) -> BadRequest:
    if data.startswith(PREFACE[:18]):
        return Http2Preface()
    if re.match(rb"[^\r\n]{1,8000} HTTP/(?!1\.[01]\r)[0-9.]{1,8}\r\n", data):
        return BadRequest("HTTP Version Not Supported: this is HTTP/1.1", 505)
    return BadRequest("malformed request line")
