"""The calls of a frontend that is an image."""

import json

from husk.aio.tasks import Tasks
from husk.builder.graph.graph import Definition
from husk.builder.protocol.messages import gateway
from husk.builder.protocol.messages.common import HealthCheckRequest, HealthCheckResponse
from husk.rpc.grpc.connection import GrpcConnection
from tests.unit.builder.protocol.fake_builder import FakeBuilder, calling
from tests.unit.builder.solver.solving import chain
from tests.unit.rpc.grpc.pairs import pipes

SERVICE = "/moby.buildkit.v1.frontend.LLBBridge"


async def test_it_is_known_without_a_header_and_has_inputs_of_its_own() -> None:
    builder = FakeBuilder()
    async with calling(builder):
        assert json.loads(builder.bridge.environment["BUILDKIT_WORKERS"])[0]["platforms"]
        job = await builder.bench.jobs.begin("one", None)
        child = job.child({"context": Definition(*chain("make"))})
        ours, theirs = pipes()
        tasks = Tasks()
        serving = tasks.spawn(builder.bridge.serve(ours, child), "serve", awaited=True)  # type: ignore[arg-type]
        async with GrpcConnection(theirs, client=True) as frontend:
            health = await frontend.unary("/grpc.health.v1.Health/Check", HealthCheckRequest().encode())
            assert HealthCheckResponse.decode(health).status == 1
            inputs = await frontend.unary(f"{SERVICE}/Inputs", gateway.Empty().encode())
            assert list(gateway.InputsResponse.decode(inputs).definitions) == ["context"]
            await frontend.unary(f"{SERVICE}/Return", gateway.ReturnRequest(gateway.Result()).encode())
        assert child.has_result
        assert not job.has_result
        await serving
        await builder.bench.jobs.end(job)
