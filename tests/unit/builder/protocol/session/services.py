"""A client's services as a test wants them: paths → functions, over a real connection in memory."""

import contextlib

from husk.builder.protocol.session.calls import SessionCalls
from husk.builder.protocol.session.client import ClientSession
from husk.rpc.grpc.status import UNIMPLEMENTED, GrpcError
from tests.unit.rpc.grpc.pairs import connected


def answering(methods):
    async def handler(stream):
        if stream.path not in methods:
            raise GrpcError(UNIMPLEMENTED, "unknown method")
        await methods[stream.path](stream)

    return handler


class Saying:
    """A service that answers one message with another; what it was asked is in `asked`."""

    def __init__(self, message):
        self._message = message
        self.asked = []

    async def __call__(self, stream):
        self.asked.append(await stream.recv())
        if isinstance(self._message, Exception):
            raise self._message
        await stream.send(self._message.encode())


@contextlib.asynccontextmanager
async def session_with(methods):
    async with connected(answering(methods)) as (connection, _):
        yield ClientSession(connection, "id", "key", list(methods))


@contextlib.asynccontextmanager
async def calls_of(methods):
    async with connected(answering(methods)) as (connection, _):
        yield SessionCalls(connection, list(methods))
