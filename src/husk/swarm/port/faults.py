"""Errors of the engine as a call of gRPC ends with them, and back. Pure."""

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
from husk.rpc.grpc.status import (
    CANCELLED,
    DEADLINE_EXCEEDED,
    FAILED_PRECONDITION,
    INTERNAL,
    INVALID_ARGUMENT,
    NOT_FOUND,
    PERMISSION_DENIED,
    RESOURCE_EXHAUSTED,
    UNAUTHENTICATED,
    UNAVAILABLE,
    UNIMPLEMENTED,
    GrpcError,
)


class TooMany(Unavailable):
    """Somebody asks for more than they are given now."""


_CODES: tuple[tuple[type[HuskError], int], ...] = (
    (TooMany, RESOURCE_EXHAUSTED),
    (InvalidParameter, INVALID_ARGUMENT),
    (Unauthorized, UNAUTHENTICATED),
    (Forbidden, PERMISSION_DENIED),
    (NotFound, NOT_FOUND),
    (Conflict, FAILED_PRECONDITION),
    (NotImplementedYet, UNIMPLEMENTED),
    (Unavailable, UNAVAILABLE),
)
_KINDS: dict[int, type[HuskError]] = {code: kind for kind, code in _CODES} | {
    DEADLINE_EXCEEDED: Unavailable,
    CANCELLED: Unavailable,
}


def to_wire(error: HuskError) -> GrpcError:
    return GrpcError(next((code for kind, code in _CODES if isinstance(error, kind)), INTERNAL), error.message)


def from_wire(error: GrpcError) -> HuskError:
    return _KINDS.get(error.code, SystemFault)(error.message)
