"""Calls of a client's services, and what goes wrong with them in the words of the engine."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from urllib.parse import quote_plus

from husk.errors import Forbidden, HuskError, InvalidParameter, NotFound, Unauthorized, Unavailable
from husk.rpc.grpc.connection import GrpcConnection
from husk.rpc.grpc.status import (
    ABORTED,
    CANCELLED,
    DEADLINE_EXCEEDED,
    NOT_FOUND,
    PERMISSION_DENIED,
    UNAUTHENTICATED,
    UNAVAILABLE,
    UNIMPLEMENTED,
    GrpcError,
)
from husk.rpc.grpc.stream import ClientStream

# A client may have to ask a person, or a program that does.
PATIENCE = 60.0

_KINDS: dict[int, type[HuskError]] = {
    NOT_FOUND: NotFound,
    UNIMPLEMENTED: NotFound,
    PERMISSION_DENIED: Forbidden,
    UNAUTHENTICATED: Unauthorized,
    UNAVAILABLE: Unavailable,
    CANCELLED: Unavailable,
    ABORTED: Unavailable,
    DEADLINE_EXCEEDED: Unavailable,
}


@contextmanager
def in_our_words(what: str) -> Iterator[None]:
    """Make what a client, or the connection to it, says a failure of ours; `what` was wanted of it."""
    try:
        yield
    except GrpcError as error:
        kind = _KINDS.get(error.code, InvalidParameter)
        raise kind(f"{what}: {error.message}" if error.message else what) from error


class SessionCalls:
    """The calls that can be made on one connection. `methods` are those that the client says it serves."""

    def __init__(self, connection: GrpcConnection, methods: Collection[str]) -> None:
        self._connection = connection
        self._methods = {method.lower() for method in methods}

    def serves(self, method: str) -> bool:
        return method.lower() in self._methods

    async def open(self, method: str, metadata: Mapping[str, Sequence[str]] | None = None) -> ClientStream:
        return await self._connection.call(method, {name: list(values) for name, values in (metadata or {}).items()})

    async def ask(self, method: str, message: bytes, metadata: Mapping[str, Sequence[str]] | None = None) -> bytes:
        """One message there, one back."""
        headers = {name: list(values) for name, values in (metadata or {}).items()}
        return await self._connection.unary(method, message, headers, timeout=PATIENCE)


def encode_values(metadata: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Values as headers take them: those that are not ASCII are escaped, and a header beside them says so."""
    encoded: dict[str, list[str]] = {}
    for name, values in metadata.items():
        if all(value.isascii() and value.isprintable() for value in values):
            encoded[name] = list(values)
        else:
            encoded[name] = [quote_plus(value) for value in values]
            encoded[f"{name}-encoded"] = ["1"]
    return encoded
