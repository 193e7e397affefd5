"""Calls find their methods, and errors of ours become those of gRPC."""

from collections.abc import AsyncGenerator

import pytest

from husk.builder.protocol.messages.session import BytesMessage
from husk.builder.protocol.serve import Metadata, answer, router, tell
from husk.errors import NotFound
from husk.rpc.grpc.status import INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED, GrpcError
from husk.rpc.protobuf import Message
from tests.unit.rpc.grpc.pairs import connected


async def shout(request: BytesMessage, metadata: Metadata) -> Message:
    if not request.data:
        raise NotFound("nothing to shout")
    return BytesMessage(request.data.upper())


async def spell(request: BytesMessage, metadata: Metadata) -> AsyncGenerator[Message, None]:
    for letter in request.data:
        yield BytesMessage(bytes([letter]))


METHODS = router({"/shout": answer(BytesMessage, shout), "/spell": tell(BytesMessage, spell)})


async def test_one_message_or_many_come_back() -> None:
    async with connected(METHODS) as (client, _):
        assert await client.unary("/shout", BytesMessage(b"hi").encode()) == BytesMessage(b"HI").encode()
        async with await client.call("/spell") as stream:
            await stream.send(BytesMessage(b"hi").encode())
            assert await stream.recv() == BytesMessage(b"h").encode()
            assert await stream.recv() == BytesMessage(b"i").encode()
            assert await stream.recv() is None


async def test_what_is_wrong_with_a_call_is_said() -> None:
    async with connected(METHODS) as (client, _):
        for path, message, code in [
            ("/whisper", b"", UNIMPLEMENTED),
            ("/shout", b"", NOT_FOUND),
            ("/shout", b"\xff", INVALID_ARGUMENT),
        ]:
            with pytest.raises(GrpcError) as caught:
                await client.unary(path, message)
            assert caught.value.code == code
        async with await client.call("/shout") as stream:
            await stream.end()
            with pytest.raises(GrpcError, match="without a message"):
                await stream.recv()
