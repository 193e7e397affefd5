"""The ways in: `POST /grpc`, `POST /session`, HTTP/2 from the first byte, and a session within a connection of gRPC.
`posted` are builds that come with `POST /build`.

    server = BuildkitServer(builder, worker, attach)
    await server.serve(stream)              # a client's calls, until it goes
    await server.session(stream, headers)   # our calls to a client, until it goes

`worker` describes what carries builds out, `attach` is what lets builds know of a session.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property

import msgspec

from husk.builder.jobs.jobs import Job
from husk.builder.protocol.control import Control
from husk.builder.protocol.gateway import Gateway
from husk.builder.protocol.history import BuildHistory
from husk.builder.protocol.history_content import HistoryContent
from husk.builder.protocol.messages.common import HealthCheckRequest, HealthCheckResponse
from husk.builder.protocol.messages.control import WorkerRecord
from husk.builder.protocol.messages.session import BytesMessage
from husk.builder.protocol.posted import PostedBuilds
from husk.builder.protocol.serve import MOST, Metadata, answer, router
from husk.builder.service import Builder
from husk.builder.solver.sessions import Sessions
from husk.rpc.grpc.connection import Bytes, GrpcConnection
from husk.rpc.grpc.status import GrpcError
from husk.rpc.grpc.stream import ServerStream
from husk.rpc.http2.core import PeerLimits

Attach = Callable[[Bytes, Mapping[str, Sequence[str]], Sessions], Awaitable[None]]

_CONTENT = "/containerd.services.content.v1.Content"
# What one message of a stream within a stream carries.
_PIECE = 1 << 20

# All builds of one `docker buildx bake` go over one connection, and each has several calls open at once.
_LIMITS = PeerLimits(streams=1024, window=1 << 18)
_SERVING = 1


class BuildkitServer:
    def __init__(
        self,
        builder: Builder,
        worker: Callable[[], WorkerRecord],
        attach: Attach,
        history: BuildHistory | None = None,
    ) -> None:
        self._builder = builder
        self._attach = attach
        self.control = control = Control(builder, worker, history)
        builder.understand(FrontendBridge(builder, control))
        self._handler = router(
            {
                **control.methods,
                **Gateway(builder, control).methods,
                **dict.fromkeys((f"{_CONTENT}/Info", f"{_CONTENT}/Read"), self._content),
                "/moby.buildkit.v1.Control/Session": self._session_within,
                "/grpc.health.v1.Health/Check": answer(HealthCheckRequest, health),
            }
        )

    @cached_property
    def posted(self) -> PostedBuilds:
        return PostedBuilds(self._builder, self.control)

    async def serve(self, below: Bytes) -> None:
        """Answer a client's calls until it goes; what it waits for ends with it."""
        async with GrpcConnection(below, handler=self._handler, limits=_LIMITS, most=MOST) as connection:
            await connection.wait_closed()

    async def session(self, below: Bytes, headers: Mapping[str, Sequence[str]]) -> None:
        await self._attach(below, headers, self._builder.sessions)

    async def _content(self, stream: ServerStream) -> None:
        await HistoryContent(self.control.history).methods[stream.path](stream)

    async def _session_within(self, stream: ServerStream) -> None:
        await self.session(_BytesOfStream(stream), stream.metadata)


class _BytesOfStream:
    """The bytes of another connection, as messages of a call."""

    def __init__(self, stream: ServerStream) -> None:
        self._stream = stream

    async def read(self) -> bytes:
        try:
            messages = await self._stream.recv_many()
        except GrpcError:
            return b""
        return b"".join(BytesMessage.decode(message).data for message in messages)

    async def write(self, data: bytes) -> None:
        try:
            for start in range(0, len(data), _PIECE):
                await self._stream.send(BytesMessage(data[start : start + _PIECE]).encode())
        except GrpcError as error:
            raise ConnectionResetError("the client has gone") from error

    async def finish(self) -> None:
        self._stream.cancel()

    def abort(self) -> None:
        self._stream.cancel()


class FrontendBridge:
    """Answers the calls of frontends that are images: the service that clients have, for the build of each."""

    def __init__(self, builder: Builder, control: Control) -> None:
        self._builder = builder
        self._control = control

    @property
    def environment(self) -> Mapping[str, str]:
        workers = [_described(self._control.worker())]
        return {"BUILDKIT_WORKERS": msgspec.json.encode(workers).decode(), "BUILDKIT_EXPORTEDPRODUCT": "husk"}

    async def serve(self, streams: Bytes, job: Job, /) -> None:
        methods = {
            **Gateway(self._builder, self._control, job).methods,
            "/grpc.health.v1.Health/Check": answer(HealthCheckRequest, health),
        }
        async with GrpcConnection(streams, handler=router(methods), most=MOST) as connection:
            await connection.wait_closed()


async def health(request: HealthCheckRequest, metadata: Metadata) -> HealthCheckResponse:
    return HealthCheckResponse(_SERVING)


def _described(worker: WorkerRecord) -> dict[str, object]:
    platforms = [{"architecture": one.architecture, "os": one.os} for one in worker.platforms]
    return {"id": worker.id, "labels": dict(worker.labels), "platforms": platforms}
