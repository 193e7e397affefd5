"""Paths of calls to methods of services, as each of them is called: one message or many, there and back."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import TypeVar

from husk.builder.protocol.errors import to_grpc
from husk.errors import HuskError, full_disk
from husk.rpc.grpc.connection import Handler
from husk.rpc.grpc.status import INVALID_ARGUMENT, UNIMPLEMENTED, GrpcError
from husk.rpc.grpc.stream import LARGEST_MESSAGE, ServerStream
from husk.rpc.protobuf import Message

Asked = TypeVar("Asked", bound=Message)
Metadata = Mapping[str, list[str]]

# What may be here of the messages of all calls on one connection, of which each may be as large as `LARGEST_MESSAGE`.
MOST = 4 * LARGEST_MESSAGE


def answer(kind: type[Asked], method: Callable[[Asked, Metadata], Awaitable[Message | bytes]]) -> Handler:
    """A method with one message there and one back, which may be encoded already."""

    async def handler(stream: ServerStream) -> None:
        request = await _request(kind, stream)
        message = await method(request, stream.metadata)
        await stream.send(message if isinstance(message, bytes) else message.encode())

    return handler


def tell(kind: type[Asked], method: Callable[[Asked, Metadata], AsyncGenerator[Message, None]]) -> Handler:
    """A method with one message there and many back."""

    async def handler(stream: ServerStream) -> None:
        request = await _request(kind, stream)
        async with aclosing(method(request, stream.metadata)) as messages:
            async for message in messages:
                await stream.send(message.encode())
                await asyncio.sleep(0)  # what there is room for is not sent in one go

    return handler


async def _request(kind: type[Asked], stream: ServerStream) -> Asked:
    data = await stream.recv()
    if data is None:
        raise GrpcError(INVALID_ARGUMENT, f"{stream.path} was called without a message")
    return kind.decode(data)


def router(methods: Mapping[str, Handler]) -> Handler:
    """One handler for all paths; errors of ours become those of gRPC."""

    async def handler(stream: ServerStream) -> None:
        method = methods.get(stream.path)
        if method is None:
            raise GrpcError(UNIMPLEMENTED, f"unknown method {stream.path}")
        try:
            await method(stream)
        except HuskError as error:
            raise to_grpc(error) from error
        except OSError as error:
            if (full := full_disk(error)) is not None:
                raise to_grpc(full) from error
            raise

    return handler
