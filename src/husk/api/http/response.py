"""An answer on the wire: a head that is put together from ready pieces, and a body, whole or in chunks.

`fields` are headers as they travel (`fields` makes them): an answer of a few hundred bytes is one formatting and one
write.
"""

from collections.abc import Mapping

from husk.api.http.request import OUR_ID, Request

# Up to here a copy is cheaper than one more piece to write.
_SMALL = 1 << 14

# Those that are answered with. `http.HTTPStatus` has them all, as an enumeration that takes each start longer to make
# than all of the edge's own classes.
_STATUSES = """\
100 Continue
101 Switching Protocols
200 OK
201 Created
202 Accepted
204 No Content
206 Partial Content
301 Moved Permanently
302 Found
304 Not Modified
307 Temporary Redirect
400 Bad Request
401 Unauthorized
403 Forbidden
404 Not Found
405 Method Not Allowed
406 Not Acceptable
408 Request Timeout
409 Conflict
410 Gone
411 Length Required
412 Precondition Failed
413 Request Entity Too Large
414 Request-URI Too Long
415 Unsupported Media Type
416 Requested Range Not Satisfiable
417 Expectation Failed
422 Unprocessable Entity
424 Failed Dependency
426 Upgrade Required
428 Precondition Required
429 Too Many Requests
431 Request Header Fields Too Large
500 Internal Server Error
501 Not Implemented
502 Bad Gateway
503 Service Unavailable
504 Gateway Timeout
505 HTTP Version Not Supported
507 Insufficient Storage
"""
STATUS_LINES = {int(line[:3]): f"HTTP/1.1 {line}\r\n".encode() for line in _STATUSES.splitlines()}
WITHOUT_BODY = frozenset({204, 304})
_WITH_BODY = {status: line for status, line in STATUS_LINES.items() if status not in WITHOUT_BODY}
CLOSE, KEEP_ALIVE = b"Connection: close\r\n", b"Connection: keep-alive\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\n"


def fields(headers: Mapping[str, str]) -> bytes:
    """Headers as they travel. ValueError for what would be two of them."""
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    for line in lines:
        if "\n" in line[:-2] or "\r" in line[:-2] or "\0" in line:
            raise ValueError(f"no header: {line!r}")
    return "".join(lines).encode(errors="surrogateescape")


def status_line(request: Request, status: int) -> bytes:
    line = STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
    return line if request.head.is_1_1 else line.replace(b"1.1", b"1.0", 1)


class Answer:
    """The answer that a handler returns, of any kind."""

    __slots__ = ()


class Unanswered(Answer):
    """There is nothing to answer on: the connection was taken, or lost, or must be. It is closed."""

    __slots__ = ()


class Response(Answer):
    """A whole answer. `close` ends the connection behind it."""

    __slots__ = ("body", "close", "fields", "status")

    def __init__(self, status: int = 200, body: bytes = b"", fields: bytes = b"", *, close: bool = False) -> None:
        self.status = status
        self.body = body
        self.fields = fields
        self.close = close

    def encode(self, request: Request, date: bytes, keep_alive: bool) -> tuple[bytes, bytes]:
        """(the answer, or its head, and what of the body is still to follow); `date` is a header."""
        status, body = self.status, self.body
        head = request.head
        size = len(body)
        if keep_alive and head.is_1_1 and size <= _SMALL and status in _WITH_BODY and not (head.is_head or head.own_id):
            # What nearly all answers are.
            parts = (_WITH_BODY[status], self.fields, date, OUR_ID, request.number, size, body)
            return b"%b%b%b%b%x\r\nContent-Length: %d\r\n\r\n%b" % parts, b""
        stamp = date + request.id_field
        connection = CLOSE if not keep_alive else b"" if head.is_1_1 else KEEP_ALIVE
        if status in WITHOUT_BODY:
            return b"%b%b%b%b\r\n" % (status_line(request, status), self.fields, stamp, connection), b""
        if head.is_head:
            body = b""
        follows = b"" if size <= _SMALL else body
        data = b"%b%b%b%bContent-Length: %d\r\n\r\n%b" % (
            status_line(request, status),
            self.fields,
            stamp,
            connection,
            size,
            b"" if follows else body,
        )
        return data, follows


class StreamedResponse(Answer):
    """An answer that is sent as it is made: its head at once, then each piece as it is written."""

    __slots__ = ("_chunked", "_connection", "_silent", "ended", "keep_alive", "status")

    def __init__(self, request: Request, fields: bytes, status: int = 200) -> None:
        connection = request.connection
        self.status = status
        self._connection = connection
        self._silent = request.head.is_head or status in WITHOUT_BODY
        self._chunked = request.head.is_1_1 and not self._silent
        self.ended = False
        # Without chunks only the end of the connection tells where the body ends.
        self.keep_alive = request.head.is_1_1 and connection.will_keep_alive()
        how = (b"" if self.keep_alive else CLOSE) + (_CHUNKED if self._chunked else b"")
        connection.begin_answer(b"%b%b%b%b\r\n" % (status_line(request, status), fields, connection.stamp(), how))

    async def write(self, data: bytes) -> None:
        """Send a piece, at once. Waits while the client does not read; ConnectionResetError when it has gone."""
        if not data or self._silent:
            return
        if not self._chunked:
            self._connection.write_now(data)
        elif len(data) <= _SMALL:
            self._connection.write_now(b"%x\r\n%b\r\n" % (len(data), data))
        else:
            self._connection.write_pieces([b"%x\r\n" % len(data), data, b"\r\n"])
        if self._connection.write_paused:
            await self._connection.drained()

    async def write_eof(self) -> None:
        self.finish()

    def finish(self) -> None:
        """The body is complete."""
        if not self.ended:
            self.ended = True
            if self._chunked:
                self._connection.write_now(b"0\r\n\r\n")
