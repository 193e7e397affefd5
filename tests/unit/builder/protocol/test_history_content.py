"""Blobs of builds that have ended."""

import pytest

from husk.builder.protocol.messages import content, control
from husk.rpc.grpc.status import INVALID_ARGUMENT, NOT_FOUND, GrpcError
from tests.unit.builder.protocol.fake_builder import Caller, FakeBuilder, calling

SERVICE = "/containerd.services.content.v1.Content"


async def read(client: Caller, request: content.ReadContentRequest) -> list[content.ReadContentResponse]:
    async with await client.connection.call(f"{SERVICE}/Read") as stream:
        await stream.send(request.encode())
        await stream.end()
        answers = []
        while (data := await stream.recv()) is not None:
            answers.append(content.ReadContentResponse.decode(data))
        return answers


async def test_the_logs_of_a_build_are_a_blob() -> None:
    async with calling(FakeBuilder()) as client:
        request = control.SolveRequest(ref="a", frontend="dockerfile.v0")
        await client.control("Solve", request, control.SolveResponse)
        asked = control.BuildHistoryRequest(early_exit=True)
        (event,) = await client.many("ListenBuildHistory", asked, control.BuildHistoryEvent)
        assert event.record is not None
        logs = event.record.logs
        assert logs is not None and logs.media_type == "application/vnd.buildkit.status.v0"
        data = await client.connection.unary(f"{SERVICE}/Info", content.InfoRequest(logs.digest).encode())
        info = content.InfoResponse.decode(data).info
        assert info is not None and info.size == logs.size > 0
        (whole,) = await read(client, content.ReadContentRequest(logs.digest))
        assert len(whole.data) == logs.size
        (part,) = await read(client, content.ReadContentRequest(logs.digest, 2, 3))
        assert (part.offset, part.data) == (2, whole.data[2:5])
        for wrong, code in (
            (content.ReadContentRequest("sha256:none"), NOT_FOUND),
            (content.ReadContentRequest(logs.digest, logs.size, 1), INVALID_ARGUMENT),
            (content.ReadContentRequest(logs.digest, -1), INVALID_ARGUMENT),
        ):
            with pytest.raises(GrpcError) as refused:
                await read(client, wrong)
            assert refused.value.code == code
