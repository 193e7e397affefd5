"""Answers the calls of frontends that are images: the service that clients have, for the build that each works for."""

from collections.abc import Mapping

import msgspec

from husk.builder.jobs.jobs import Job
from husk.builder.protocol.backend import Backend, Worker
from husk.builder.protocol.control import Control
from husk.builder.protocol.gateway import Gateway
from husk.builder.protocol.messages.common import HealthCheckRequest, HealthCheckResponse
from husk.builder.protocol.serve import MOST, Metadata, answer, router
from husk.rpc.grpc.connection import Bytes, Connection

_SERVING = 1


class FrontendBridge:
    def __init__(self, backend: Backend, control: Control) -> None:
        self._backend = backend
        self._control = control

    @property
    def environment(self) -> Mapping[str, str]:
        workers = [_described(worker) for worker in self._backend.workers()]
        return {"BUILDKIT_WORKERS": msgspec.json.encode(workers).decode(), "BUILDKIT_EXPORTEDPRODUCT": "husk"}

    async def serve(self, streams: Bytes, job: Job, /) -> None:
        methods = {
            **Gateway(self._backend, self._control, job).methods,
            "/grpc.health.v1.Health/Check": answer(HealthCheckRequest, health),
        }
        async with Connection(streams, handler=router(methods), most=MOST) as connection:
            await connection.wait_closed()


async def health(request: HealthCheckRequest, metadata: Metadata) -> HealthCheckResponse:
    return HealthCheckResponse(_SERVING)


def _described(worker: Worker) -> dict[str, object]:
    platforms = [{"architecture": one.architecture, "os": one.os} for one in worker.platforms]
    return {"id": worker.id, "labels": dict(worker.labels), "platforms": platforms}
