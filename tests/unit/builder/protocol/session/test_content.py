"""A client's blobs, as calls."""

import pytest

from husk.builder.protocol.messages.content import (
    ACTION_COMMIT,
    ACTION_STAT,
    ACTION_WRITE,
    Info,
    InfoRequest,
    InfoResponse,
    ReadContentRequest,
    ReadContentResponse,
    WriteContentRequest,
    WriteContentResponse,
)
from husk.builder.protocol.session.content import ClientContent
from husk.errors import InvalidParameter, NotFound
from husk.rpc.grpc.status import ALREADY_EXISTS, NOT_FOUND, UNKNOWN, GrpcError
from tests.unit.builder.protocol.session.services import Saying, calls_of

CONTENT = "/containerd.services.content.v1.Content/"
DIGEST = "sha256:" + "0" * 64


async def pieces(*chunks):
    for chunk in chunks:
        yield chunk


class Store:
    """Takes one blob as containerd's service does."""

    def __init__(self, error=None):
        self.metadata = {}
        self.said = []
        self.data = b""
        self._error = error

    async def __call__(self, stream):
        self.metadata = stream.metadata
        while (message := await stream.recv()) is not None:
            request = WriteContentRequest.decode(message)
            if self._error:
                raise self._error
            self.said.append(request.action)
            assert request.offset == len(self.data)
            self.data += request.data
            await stream.send(WriteContentResponse(request.action, len(self.data)).encode())
            if request.action == ACTION_COMMIT:
                assert (request.total, request.expected) == (len(self.data), DIGEST)
                return


def methods(**services):
    return {CONTENT + name: service for name, service in {"Read": Saying(ReadContentResponse()), **services}.items()}


async def test_a_blob_is_read_from_the_store_that_was_named():
    seen = {}

    async def serve(stream):
        seen.update(stream.metadata)
        request = ReadContentRequest.decode(await stream.recv())
        assert (request.digest, request.offset) == (DIGEST, 2)
        await stream.send(ReadContentResponse(2, b"ll").encode())
        await stream.send(ReadContentResponse(4, b"o").encode())

    async with calls_of(methods(Read=serve)) as calls:
        read = [chunk async for chunk in ClientContent(calls, "layout").read(DIGEST, offset=2)]
    assert read == [b"ll", b"o"]
    assert seen["buildkit-attachable-store-id"] == ["layout"]


async def test_the_size_of_a_blob():
    service = Saying(InfoResponse(Info(DIGEST, 7)))
    async with calls_of(methods(Info=service)) as calls:
        assert await ClientContent(calls, "layout").size(DIGEST) == 7
    assert InfoRequest.decode(service.asked[0]).digest == DIGEST


async def test_a_blob_that_is_not_there():
    async def refuse(stream):
        raise GrpcError(NOT_FOUND, "content not found")

    async with calls_of(methods(Read=refuse, Info=refuse)) as calls:
        content = ClientContent(calls, "layout")
        with pytest.raises(NotFound, match="content not found"):
            await content.size(DIGEST)
        with pytest.raises(NotFound, match="content not found"):
            async for _ in content.read(DIGEST):
                pass


async def test_a_blob_is_written_in_messages_that_are_not_too_large():
    store = Store()
    async with calls_of(methods(Write=store)) as calls:
        size = 3 + (2 << 20)
        assert await ClientContent(calls, "layout").write(DIGEST, size, pieces(b"abc", b"x" * (2 << 20)))
    assert store.said == [ACTION_STAT, ACTION_WRITE, ACTION_WRITE, ACTION_WRITE, ACTION_COMMIT]
    assert store.data == b"abc" + b"x" * (2 << 20)


async def test_a_blob_that_is_there_already_is_not_read():
    async def none():
        raise AssertionError("nobody wants it")
        yield b""

    async with calls_of(methods(Write=Store(GrpcError(ALREADY_EXISTS, "exists")))) as calls:
        assert not await ClientContent(calls, "layout").write(DIGEST, 1, none())


async def test_a_client_that_cannot_write_or_stops_in_the_middle():
    async def stop(stream):
        await stream.recv()

    async with calls_of(methods(Write=Store(GrpcError(UNKNOWN, "no space left")))) as calls:
        with pytest.raises(InvalidParameter, match="no space left"):
            await ClientContent(calls, "layout").write(DIGEST, 1, pieces(b"x"))
    async with calls_of(methods(Write=stop)) as calls:
        with pytest.raises(InvalidParameter, match="stopped in the middle"):
            await ClientContent(calls, "layout").write(DIGEST, 1, pieces(b"x"))


async def test_a_client_without_blobs():
    async with calls_of({}) as calls:
        with pytest.raises(NotFound, match="offers no blobs"):
            ClientContent(calls, "layout")
