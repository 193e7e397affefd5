"""Files between a client and a build, as calls."""

import pytest

from husk.builder.protocol.messages.session import BytesMessage
from husk.builder.protocol.session import files
from husk.builder.solver.sessions import LocalDirectory
from husk.errors import InvalidParameter, NotFound
from husk.rpc.grpc.status import ALREADY_EXISTS, NOT_FOUND, UNKNOWN, GrpcError
from tests.unit.builder.protocol.session.services import calls_of

SYNC, SEND, UPLOAD = (
    "/moby.filesync.v1.FileSync/DiffCopy",
    "/moby.filesync.v1.FileSend/DiffCopy",
    "/moby.upload.v1.Upload/Pull",
)


async def pieces(*chunks):
    for chunk in chunks:
        yield chunk


async def test_a_sync_names_the_directory_and_what_is_wanted():
    seen = {}

    async def serve(stream):
        seen.update(stream.metadata)
        await stream.send(b"stat")
        assert await stream.recv() == b"request"

    wanted = LocalDirectory(name="context", include=["a", "b"], exclude=["ü b"], follow=["Dockerfile"])
    async with calls_of({SYNC: serve}) as calls, files.sync(calls, wanted) as channel:
        assert await channel.receive() == b"\0\0\0\0\4stat"
        await channel.send(b"\0\0\0\0\7req")
        await channel.send(b"uest")
        await channel.end()
        assert await channel.receive() == b""
    assert seen["dir-name"] == ["context"]
    assert seen["include-patterns"] == ["a", "b"]
    assert seen["exclude-patterns"] == ["%C3%BC+b"]
    assert seen["exclude-patterns-encoded"] == ["1"]
    assert seen["followpaths"] == ["Dockerfile"]
    assert "include-patterns-encoded" not in seen


async def test_a_directory_that_the_client_does_not_share():
    async def refuse(stream):
        raise GrpcError(NOT_FOUND, 'no access allowed to dir "x"')

    async with calls_of({SYNC: refuse}) as calls, files.sync(calls, LocalDirectory(name="x")) as channel:
        with pytest.raises(NotFound, match="sync of x: no access allowed"):
            await channel.receive()


async def test_a_file_goes_with_its_metadata_in_messages_that_are_not_too_large():
    got = []

    async def serve(stream):
        got.append(stream.metadata)
        while (message := await stream.recv()) is not None:
            got.append(len(BytesMessage.decode(message).data))

    async with calls_of({SEND: serve}) as calls:
        chunks = pieces(b"x" * 10, b"y" * (7 << 20))
        assert await files.send_file(calls, 3, chunks, {"containerimage.digest": "sha256:1"})
    assert got[0]["buildkit-attachable-exporter-id"] == ["3"]
    assert got[0]["exporter-md-containerimage.digest"] == ["sha256:1"]
    assert got[1:] == [10, 3 << 20, 3 << 20, 1 << 20]


async def test_a_file_that_the_client_has_already():
    async def refuse(stream):
        raise GrpcError(ALREADY_EXISTS, "target already exists")

    async with calls_of({SEND: refuse}) as calls:
        assert not await files.send_file(calls, 0, pieces(b"x"), {})


async def test_a_client_that_cannot_write():
    async def fail(stream):
        await stream.recv()
        raise GrpcError(UNKNOWN, "no space left on device")

    async with calls_of({SEND: fail}) as calls:
        with pytest.raises(InvalidParameter, match="no space left"):
            await files.send_file(calls, 0, pieces(b"x", b"y"), {})


async def test_a_directory_goes_to_its_exporter():
    seen = {}

    async def serve(stream):
        seen.update(stream.metadata)

    async with calls_of({SEND: serve}) as calls, files.send_directory(calls, 2) as channel:
        assert await channel.receive() == b""
    assert seen["buildkit-attachable-exporter-id"] == ["2"]
    assert seen["buildkit-exporter-multi-platform"] == ["1"]


async def test_an_upload():
    seen = {}

    async def serve(stream):
        seen.update(stream.metadata)
        await stream.send(BytesMessage(data=b"tar").encode())
        await stream.send(BytesMessage(data=b"ball").encode())

    async with calls_of({UPLOAD: serve}) as calls, files.upload(calls, "http://buildkit-session/abc") as chunks:
        assert [chunk async for chunk in chunks] == [b"tar", b"ball"]
    assert (seen["urlpath"], seen["urlhost"]) == (["/abc"], ["buildkit-session"])


@pytest.mark.parametrize("what", ["send_file", "send_directory", "upload"])
async def test_what_the_client_does_not_serve(what):
    async with calls_of({}) as calls:
        with pytest.raises(NotFound, match="not supported by the client"):
            if what == "send_file":
                await files.send_file(calls, 0, pieces(), {})
            elif what == "send_directory":
                async with files.send_directory(calls, 0):
                    pass
            else:
                async with files.upload(calls, "http://x/y"):
                    pass
