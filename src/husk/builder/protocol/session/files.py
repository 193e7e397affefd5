"""Files between a client and a build: directories as packets, single files and uploads as bytes."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from husk.builder.protocol.messages.session import BytesMessage
from husk.builder.protocol.session.calls import SessionCalls, encode_values, in_our_words
from husk.builder.solver.sessions import LocalDirectory
from husk.errors import NotFound
from husk.rpc.grpc.status import ALREADY_EXISTS, GrpcError
from husk.rpc.grpc.stream import ClientStream
from husk.text.urls import split_url

_SYNC = "/moby.filesync.v1.FileSync/DiffCopy"
_SEND = "/moby.filesync.v1.FileSend/DiffCopy"
_UPLOAD = "/moby.upload.v1.Upload/Pull"
_EXPORTER = "buildkit-attachable-exporter-id"
_MANY_PLATFORMS = "buildkit-exporter-multi-platform"
# The client's gRPC takes no messages above 4 MiB.
_LARGEST_CHUNK = 3 << 20


class RawChannel:
    """The bytes of a call as they are: `husk.builder.store.sync.exchange.Channel`."""

    def __init__(self, stream: ClientStream, what: str) -> None:
        self._stream = stream
        self._what = what

    async def receive(self) -> bytes:
        with in_our_words(self._what):
            return await self._stream.recv_raw()

    async def send(self, data: bytes, /) -> None:
        with in_our_words(self._what):
            await self._stream.send_raw(data)

    async def end(self) -> None:
        await self._stream.end()


def are_served(calls: SessionCalls) -> bool:
    return calls.serves(_SYNC)


@asynccontextmanager
async def sync(calls: SessionCalls, directory: LocalDirectory) -> AsyncIterator[RawChannel]:
    if not are_served(calls):
        raise NotFound("no local sources enabled: the client of this build offers no directories")
    wanted: dict[str, Sequence[str]] = {"dir-name": [directory.name]}
    patterns = {
        "include-patterns": directory.include,
        "exclude-patterns": directory.exclude,
        "followpaths": directory.follow,
    }
    wanted |= {name: values for name, values in patterns.items() if values}
    async with _channel(calls, _SYNC, encode_values(wanted), f"sync of {directory.name}") as channel:
        yield channel


@asynccontextmanager
async def send_directory(calls: SessionCalls, exporter: int) -> AsyncIterator[RawChannel]:
    _check_serves(calls, _SEND)
    metadata = {_EXPORTER: [str(exporter)], _MANY_PLATFORMS: ["1"]}
    async with _channel(calls, _SEND, metadata, "export of files") as channel:
        yield channel


async def send_file(
    calls: SessionCalls, exporter: int, chunks: AsyncIterator[bytes], metadata: Mapping[str, str]
) -> bool:
    """False if the client has the file already."""
    _check_serves(calls, _SEND)
    headers = {f"exporter-md-{name}": [value] for name, value in metadata.items()}
    headers = encode_values(headers) | {_EXPORTER: [str(exporter)]}
    try:
        with in_our_words("export of a file"):
            stream = await calls.open(_SEND, headers)
            async with stream:
                async for chunk in chunks:
                    for start in range(0, len(chunk), _LARGEST_CHUNK):
                        await stream.send(BytesMessage(data=chunk[start : start + _LARGEST_CHUNK]).encode())
                await stream.end()
                while await stream.recv() is not None:
                    pass
    except Exception as error:
        if isinstance(cause := error.__cause__, GrpcError) and cause.code == ALREADY_EXISTS:
            return False
        raise
    return True


@asynccontextmanager
async def upload(calls: SessionCalls, url: str) -> AsyncIterator[AsyncIterator[bytes]]:
    _check_serves(calls, _UPLOAD)
    parts = split_url(url)
    with in_our_words(f"upload of {url}"):
        stream = await calls.open(_UPLOAD, {"urlpath": [parts.path], "urlhost": [parts.netloc]})
    async with stream:
        yield _received(stream, url)


async def _received(stream: ClientStream, url: str) -> AsyncIterator[bytes]:
    with in_our_words(f"upload of {url}"):
        while (message := await stream.recv()) is not None:
            yield BytesMessage.decode(message).data


@asynccontextmanager
async def _channel(
    calls: SessionCalls, method: str, metadata: Mapping[str, Sequence[str]], what: str
) -> AsyncIterator[RawChannel]:
    with in_our_words(what):
        stream = await calls.open(method, metadata)
    async with stream:
        yield RawChannel(stream, what)


def _check_serves(calls: SessionCalls, method: str) -> None:
    if not calls.serves(method):
        raise NotFound(f"method {method} not supported by the client")
