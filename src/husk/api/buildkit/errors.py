"""Errors of ours as clients of BuildKit know them: a code, a message, and where in a file it comes from."""

import base64

import msgspec
from msgspec import Struct

from husk.api.buildkit.messages.common import Any, Status
from husk.api.grpc import status
from husk.api.grpc.status import GrpcError
from husk.engine.builder.graph import Location, SourceFile
from husk.errors import (
    Conflict,
    Forbidden,
    HuskError,
    InvalidParameter,
    NotFound,
    NotImplementedYet,
    SystemFault,
    Unauthorized,
    Unavailable,
)

_CODES: dict[type[HuskError], int] = {
    InvalidParameter: status.INVALID_ARGUMENT,
    Unauthorized: status.UNAUTHENTICATED,
    Forbidden: status.PERMISSION_DENIED,
    NotFound: status.NOT_FOUND,
    Conflict: status.ALREADY_EXISTS,
    NotImplementedYet: status.UNIMPLEMENTED,
    Unavailable: status.UNAVAILABLE,
    SystemFault: status.INTERNAL,
}
_KINDS = {code: kind for kind, code in _CODES.items()}

# Details are JSON, by types that BuildKit's clients have registered.
_TYPES = "github.com/moby/buildkit/errdefs"


class Details(Struct, frozen=True, kw_only=True):
    """What else a client can show of a failure."""

    vertex: str = ""
    source: SourceFile | None = None
    locations: list[Location] = []


def to_grpc(error: HuskError, details: Details | None = None) -> GrpcError:
    code = next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), status.UNKNOWN)
    described = _described(details) if details else []
    if not described:
        return GrpcError(code, error.message)
    return GrpcError(code, error.message, Status(code, error.message, described).encode())


def from_status(told: Status) -> HuskError:
    """What a client says went wrong on its side."""
    return _KINDS.get(told.code, HuskError)(told.message or "the client's frontend failed")


def _described(details: Details) -> list[Any]:
    described = []
    if details.vertex:
        described.append(_any("Vertex", {"digest": details.vertex}))
    if details.source and details.locations:
        info = {
            "filename": details.source.name,
            "data": base64.b64encode(details.source.content).decode(),
            "language": details.source.language,
        }
        ranges = [{"start": {"line": one.start}, "end": {"line": one.end}} for one in details.locations]
        described.append(_any("Source", {"info": info, "ranges": ranges}))
    return described


def _any(name: str, content: dict[str, object]) -> Any:
    return Any(f"{_TYPES}.{name}+json", msgspec.json.encode(content))
