"""How does an error look on the wire? A status and `{"message": ...}`, decided here and nowhere else."""

from aiohttp import web

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
from husk.gojson import encode

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


class PageNotFound(NotFound):
    """No operation has this path."""

    def __init__(self) -> None:
        super().__init__("page not found")


class MethodNotAllowed(HuskError):
    """The path exists, with other methods."""

    def __init__(self, method: str, allowed: list[str]) -> None:
        super().__init__(f"method {method} is not allowed here; allowed: {', '.join(allowed)}")
        self.allowed = allowed


def status_of(error: HuskError) -> int:
    for kind in type(error).__mro__:
        if (status := _STATUS.get(kind)) is not None:
            return status
    return 500


def error_body(message: str) -> bytes:
    return encode({"message": message}) + b"\n"


def error_response(error: HuskError) -> web.Response:
    if isinstance(error, MethodNotAllowed):
        return failure(405, error.message, {"Allow": ", ".join(error.allowed)})
    status = status_of(error)
    if status == 304:
        return web.Response(status=304)
    return failure(status, error.message)


def failure(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        status=status, body=error_body(message), headers={"Content-Type": "application/json", **(headers or {})}
    )
