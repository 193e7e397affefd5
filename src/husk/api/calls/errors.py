"""Errors on the wire: a status and `{"message": ...}`, decided here and nowhere else."""

from husk.api.http.response import Response
from husk.errors import (
    Conflict,
    Forbidden,
    HuskError,
    InvalidParameter,
    NotFound,
    NotImplementedYet,
    NotModified,
    SystemFault,
    Unauthorized,
    Unavailable,
)
from husk.text.gojson import encode

_STATUS: dict[type[HuskError], int] = {
    NotModified: 304,
    InvalidParameter: 400,
    Unauthorized: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    SystemFault: 500,
    NotImplementedYet: 501,
    Unavailable: 503,
}


JSON_TYPE = b"Content-Type: application/json\r\n"


class PageNotFound(NotFound):
    """No operation has this path."""

    def __init__(self) -> None:
        super().__init__("page not found")


def status_of(error: HuskError) -> int:
    for kind in type(error).__mro__:
        if (status := _STATUS.get(kind)) is not None:
            return status
    return 500


def error_body(message: str) -> bytes:
    return encode({"message": message}) + b"\n"


def error_response(error: HuskError, fields: bytes) -> Response:
    """The answer; `fields` are the headers that every answer has."""
    status = status_of(error)
    if status == 304:
        return Response(304, fields=fields)
    return failure(status, error.message, fields)


def failure(status: int, message: str, fields: bytes) -> Response:
    return Response(status, error_body(message), JSON_TYPE + fields)
