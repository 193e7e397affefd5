"""The words of a page when something is wrong: a status, a heading and a sentence. Pure."""

from typing import NamedTuple, Self

from husk.api.http.errors import BadRequest, BodyCutOff, BodyTooLarge
from husk.errors import (
    Conflict,
    Forbidden,
    HuskError,
    InvalidParameter,
    NotFound,
    NotImplementedYet,
    Unauthorized,
    Unavailable,
)

_STATUSES: tuple[tuple[type[HuskError], int], ...] = (
    (NotFound, 404),
    (InvalidParameter, 400),
    (Conflict, 409),
    (Forbidden, 403),
    (Unauthorized, 403),
    (NotImplementedYet, 501),
    (Unavailable, 503),
)
_TITLES = {
    400: "That cannot be done",
    403: "Not allowed",
    404: "Not found",
    405: "Not allowed here",
    409: "Not possible now",
    413: "Too large",
    429: "Too much at once",
    501: "Not built yet",
    503: "The engine does not answer",
}


class Failure(NamedTuple):
    """A failure as a page shows it: the status that browsers get, and a sentence that says what is wrong."""

    status: int
    message: str

    @property
    def title(self) -> str:
        return _TITLES.get(self.status, "Something went wrong")

    @classmethod
    def path(cls, path: str) -> Self:
        return cls(404, f"there is no page at {path}")

    @classmethod
    def method(cls, methods: tuple[str, ...]) -> Self:
        return cls(405, f"this path takes {' and '.join(methods)} only")

    @classmethod
    def origin(cls) -> Self:
        return cls(403, "the request was not made by a page of this dashboard")


def failure_of(error: Exception) -> Failure:
    """Turn an exception into the failure that is shown to the person who looks."""
    if isinstance(error, BodyTooLarge):
        return Failure(413, "what was sent is larger than may be sent here")
    if isinstance(error, BadRequest):
        return Failure(error.status, error.reason)
    if isinstance(error, BodyCutOff):
        return Failure(400, "what was sent is not complete")
    if isinstance(error, TimeoutError):
        return Failure(503, "the engine takes too long to answer")
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return Failure(status, error.args[0] if error.args else kind.__name__)
    if isinstance(error, HuskError):
        return Failure(502, error.message)
    return Failure(500, "the dashboard has a fault: the log of the process that serves it says more")
