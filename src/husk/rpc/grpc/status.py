"""The end of a gRPC call: a code, a message, and details for programs, as they go in the trailers.

The codes with which calls of gRPC end.
"""

import base64
import binascii
from collections.abc import Sequence
from urllib.parse import quote, unquote_to_bytes

from husk.rpc.http2.events import Headers

_DETAILS = b"grpc-status-details-bin"
# Of a message, what fits into headers with all that is beside it.
_LONGEST_MESSAGE = 8 << 10
_LARGEST_DETAILS = 24 << 10
(
    OK,
    CANCELLED,
    UNKNOWN,
    INVALID_ARGUMENT,
    DEADLINE_EXCEEDED,
    NOT_FOUND,
    ALREADY_EXISTS,
    PERMISSION_DENIED,
    RESOURCE_EXHAUSTED,
    FAILED_PRECONDITION,
    ABORTED,
    OUT_OF_RANGE,
    UNIMPLEMENTED,
    INTERNAL,
    UNAVAILABLE,
    DATA_LOSS,
    UNAUTHENTICATED,
) = range(17)


class GrpcError(Exception):
    """A call that did not end well. `details` is an encoded google.rpc.Status, or nothing."""

    def __init__(self, code: int, message: str, details: bytes = b"") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


def trailers(error: GrpcError | None = None, more: Sequence[tuple[bytes, bytes]] = ()) -> Headers:
    """The trailers that say how a call of ours ended; no error is OK."""
    if error is None:
        return [(b"grpc-status", b"0"), *more]
    said = [(b"grpc-status", b"%d" % error.code)]
    if error.message:
        shortened = error.message.encode(errors="replace")[:_LONGEST_MESSAGE]
        said.append((b"grpc-message", quote(shortened, safe=" !\"#$&'()*+,/:;<=>?@[\\]^`{|}~").encode()))
    if error.details and len(error.details) <= _LARGEST_DETAILS:
        said.append((_DETAILS, base64.b64encode(error.details).rstrip(b"=")))
    return [*said, *more]


def _code(text: bytes) -> int:
    return int(text) if text.isdigit() and len(text) <= 9 else UNKNOWN


def outcome(headers: Headers) -> GrpcError | None:
    """Read the error of a call from the trailers of a peer: None is OK."""
    said = dict(headers)
    if b"grpc-status" not in said:
        status = said.get(b":status", b"")
        return GrpcError(_OF_HTTP.get(status, UNKNOWN), f"the peer does not speak gRPC: HTTP status {status.decode()}")
    code = _code(said[b"grpc-status"])
    if code == OK:
        return None
    message = unquote_to_bytes(said.get(b"grpc-message", b"")).decode(errors="replace")
    return GrpcError(code, message, binary(said.get(_DETAILS, b"")))


def binary(value: bytes) -> bytes:
    """The value of a header whose name ends with `-bin`; nothing if it cannot be read."""
    try:
        return base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


_OF_HTTP = {
    b"400": INTERNAL,
    b"401": UNAUTHENTICATED,
    b"403": PERMISSION_DENIED,
    b"404": UNIMPLEMENTED,
    b"429": UNAVAILABLE,
    b"502": UNAVAILABLE,
    b"503": UNAVAILABLE,
    b"504": UNAVAILABLE,
}

_UNITS = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}


def seconds(value: bytes) -> float | None:
    """Read the time of `grpc-timeout`, in seconds; None if the value cannot be understood."""
    number, unit = value[:-1], value[-1:]
    if unit not in _UNITS or not number.isdigit() or len(number) > 8:
        return None
    return int(number) * _UNITS[unit]
