"""A client's request: its head's parts, read when somebody wants them, and its body."""

import itertools
import os
from urllib.parse import parse_qsl, unquote

from husk.api.http.channel import Channel
from husk.api.http.errors import BadRequest
from husk.api.http.parser import RequestHead
from husk.api.http.upload import UploadedBody
from husk.watch import Serving, serving

# Ids of this process: what no other one begins with, and a number.
_ID_NAME = b"X-Request-Id: "
OUR_ID = b"%b%b-" % (_ID_NAME, os.urandom(6).hex().encode())
_next_number = itertools.count(1).__next__


class Query:
    """The query behind the `?`: names with one value or more, of which most readers take the first."""

    __slots__ = ("_values",)

    def __init__(self, text: str) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in parse_qsl(text, keep_blank_values=True, errors="surrogateescape") if text else ():
            self._values.setdefault(name, []).append(value)

    def get(self, name: str, default: str = "") -> str:
        """The first value. BadRequest where it is no text."""
        values = self._values.get(name)
        return _text(name, values[0]) if values else default

    def getall(self, name: str) -> list[str]:
        return [_text(name, value) for value in self._values.get(name, [])]

    def file_name(self, name: str) -> str:
        """The first value, whose bytes need not be text; `os.fsencode` gives them back."""
        return next(iter(self.file_names(name)), "")

    def file_names(self, name: str) -> list[str]:
        """All values, as `file_name`."""
        return self._values.get(name, [])

    def names(self) -> list[str]:
        """All of them, each once, in their order."""
        return list(self._values)

    def __contains__(self, name: str) -> bool:
        return name in self._values


def _text(name: str, value: str) -> str:
    """The value, where its bytes were UTF-8: what is none could be neither compared nor told."""
    if not value.isascii() and not is_text(value):
        raise BadRequest(f"invalid query parameter {name!a}: its value is not UTF-8")
    return value


def is_text(value: str) -> bool:
    """Tell whether it has no bytes that are no text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


_NO_QUERY = Query("")


class Request:
    """One request on one connection."""

    __slots__ = ("_query", "body", "connection", "fault", "head", "meant", "method", "number", "raw_path", "serving")

    def __init__(self, head: RequestHead, connection: Channel) -> None:
        self.head = head
        self.connection = connection
        self.method = head.method
        self.raw_path = head.raw_path
        self.body: UploadedBody | None = None
        self._query: Query | None = None
        # Half of its id, which is put together where it is written: every answer has one, few lines of the log do.
        self.number = _next_number()
        self.serving: Serving | None = None
        # What went wrong with it, for who looks on: an answer that has begun tells it in its body alone.
        self.fault = ""
        # What its body asks for, as its handler has understood it, for who looks on.
        self.meant: object = None

    @property
    def id_field(self) -> bytes:
        """Its id as the header that the answer has."""
        given = self.head.own_id
        return b"%b%b\r\n" % (_ID_NAME, given) if given else b"%b%x\r\n" % (OUR_ID, self.number)

    @property
    def id(self) -> str:
        """The name of the request in logs and in the answer: the client's own word for it, or one of ours."""
        return self.id_field[len(_ID_NAME) : -2].decode()

    def enter(self) -> None:
        """From here on, in this context, work is done for this request."""
        if self.serving is None:
            self.serving = Serving(self.id)
        serving.set(self.serving)

    def leave(self) -> None:
        """It is answered."""
        if self.serving is not None:
            self.serving.over = True

    @property
    def path(self) -> str:
        """The path without its percent signs; bytes that are no text stay (`os.fsencode` gives them back)."""
        text = self.raw_path.decode(errors="surrogateescape")
        return unquote(text, errors="surrogateescape") if "%" in text else text

    @property
    def query(self) -> Query:
        if self._query is None:
            self._query = Query(self.query_text) if self.head.raw_query else _NO_QUERY
        return self._query

    @property
    def query_text(self) -> str:
        """The query as it was sent."""
        return self.head.raw_query.decode(errors="surrogateescape")

    def header(self, name: str, default: str = "") -> str:
        """The first header of that name, which is written in lower case."""
        value = self.head.headers.get(name.encode())
        return default if value is None else value.decode(errors="surrogateescape")

    def all_headers(self) -> dict[str, list[str]]:
        """All values of all names."""
        headers = {name.decode(): [value.decode(errors="surrogateescape")] for name, value in self.head.headers.items()}
        for name, value in self.head.repeated:
            headers[name.decode()].append(value.decode(errors="surrogateescape"))
        return headers

    def has(self, name: str) -> bool:
        return name.encode() in self.head.headers

    @property
    def content_length(self) -> int:
        """0 also where nobody knows, for the body comes in chunks."""
        return self.head.length

    @property
    def begun(self) -> bool:
        """True once the answer has begun."""
        return self.connection.answer_begun

    @property
    def gone(self) -> bool:
        """True once the client has left."""
        return self.connection.left
