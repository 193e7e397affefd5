"""The service LLBBridge, as a frontend in a client calls it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from husk.builder.graph import ops
from husk.builder.graph.llb_write import definition
from husk.builder.protocol.gateway import stat_message
from husk.builder.protocol.messages import control, gateway
from husk.builder.protocol.messages.common import Status, Timestamp
from husk.builder.protocol.messages.source_policy import Policy, Rule, Selector
from husk.rpc.grpc.status import INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED, UNKNOWN, GrpcError
from husk.rpc.protobuf import Message
from tests.unit.builder.protocol.fake_builder import Caller, FakeBuilder, calling, entry
from tests.unit.builder.solver.solving import chain


@asynccontextmanager
async def building(builder: FakeBuilder) -> AsyncIterator[tuple[Caller, "asyncio.Future[control.SolveResponse]"]]:
    """A client in the middle of a build of its own, and the answer to it."""
    async with calling(builder) as client:
        request = control.SolveRequest(ref="b", frontend_inputs={"in": definition(*chain("given")).encode()})
        solving = asyncio.ensure_future(client.control("Solve", request, control.SolveResponse))  # noqa: TID251
        await builder.job("b")
        yield client, solving
        solving.cancel()
        await asyncio.gather(solving, return_exceptions=True)


async def made(client: Caller) -> gateway.Ref:
    request = gateway.SolveRequest(definition=definition(*chain("make")).encode(), allow_result_return=True)
    answer = await client.gateway("Solve", request, gateway.SolveResponse)
    assert answer.result is not None and answer.result.ref is not None
    return answer.result.ref


async def test_a_frontend_solves_and_gives_its_result() -> None:
    async with building(FakeBuilder()) as (client, solving):
        pong = await client.gateway("Ping", gateway.Empty(), gateway.PongResponse)
        assert {"return", "proto.refarray"} <= {cap.id for cap in pong.frontend_caps if cap.enabled}
        ref = await made(client)
        assert ref.definition is not None and len(ops.Definition.decode(ref.definition).definition) == 3
        result = gateway.Result(ref=ref, metadata={"k": b"v"})
        await client.gateway("Return", gateway.ReturnRequest(result), gateway.Empty)
        assert (await solving).exporter_response == {"stacks": "make(image())", "k": "v"}


async def test_our_own_frontend_is_asked_for_by_name() -> None:
    async with building(FakeBuilder()) as (client, _):
        request = gateway.SolveRequest(
            frontend="dockerfile.v0",
            frontend_opt={"platform": "linux/amd64,linux/arm64"},
            allow_result_return=True,
        )
        answer = await client.gateway("Solve", request, gateway.SolveResponse)
        assert answer.result is not None and answer.result.refs is not None
        assert list(answer.result.refs.refs) == ["linux/amd64", "linux/arm64"]
        assert "containerimage.config/linux/amd64" in answer.result.metadata
        returned = gateway.ReturnRequest(answer.result)
        await client.gateway("Return", returned, gateway.Empty)


async def test_a_result_is_for_so_many_platforms() -> None:
    """All that leads to each of them is gone through."""
    async with building(FakeBuilder()) as (client, _):
        ref = await made(client)
        refs = gateway.RefMap({str(number): gateway.Ref(ref.id) for number in range(101)})
        with pytest.raises(GrpcError, match="100 platforms at most"):
            await client.gateway("Return", gateway.ReturnRequest(gateway.Result(refs=refs)), gateway.Empty)


async def test_a_frontend_that_fails_fails_the_build() -> None:
    async with building(FakeBuilder()) as (client, solving):
        await client.gateway("Return", gateway.ReturnRequest(error=Status(5, "no stage x")), gateway.Empty)
        with pytest.raises(GrpcError, match="no stage x") as caught:
            await solving
        assert caught.value.code == UNKNOWN


async def test_files_of_a_ref_can_be_read() -> None:
    builder = FakeBuilder()
    async with building(builder) as (client, _):
        ref = (await made(client)).id
        read = gateway.ReadFileRequest(ref, "/etc/os-release", gateway.FileRange(5, 1))
        assert (await client.gateway("ReadFile", read, gateway.ReadFileResponse)).data == b"x"
        read = gateway.ReadFileRequest(ref, "/etc/os-release")
        assert (await client.gateway("ReadFile", read, gateway.ReadFileResponse)).data == b"NAME=x\n"
        listed = gateway.ReadDirRequest(ref, "/etc", "os*")
        (entry,) = (await client.gateway("ReadDir", listed, gateway.ReadDirResponse)).entries
        assert (entry.path, entry.mode, entry.size) == ("os-release", 0o644, 7)
        looked = await client.gateway("StatFile", gateway.StatFileRequest(ref, "/tmp"), gateway.StatFileResponse)
        assert looked.stat is not None and looked.stat.mode == 1 << 31 | 1 << 20 | 0o777
        await client.gateway("Evaluate", gateway.EvaluateRequest(ref), gateway.Empty)
    assert builder.bench.worker.ran == ["image", "make"]


async def test_a_file_that_is_too_large_for_a_message_is_refused() -> None:
    builder = FakeBuilder()
    builder.files["/large"] = bytes(17 << 20)
    async with building(builder) as (client, _):
        ref = (await made(client)).id
        with pytest.raises(GrpcError, match="too large"):
            await client.gateway("ReadFile", gateway.ReadFileRequest(ref, "/large"), gateway.ReadFileResponse)


async def test_images_are_looked_up() -> None:
    builder = FakeBuilder()
    linux = ops.Platform("amd64", "linux")
    async with building(builder) as (client, _):
        asked = gateway.ResolveImageConfigRequest("x", linux, "pull")
        found = await client.gateway("ResolveImageConfig", asked, gateway.ResolveImageConfigResponse)
        assert (found.digest, found.config, found.ref) == ("sha256:1", b"{}", "x@sha256:1")
        source = ops.SourceOp("docker-image://x", {"image.resolvemode": "local"})
        meta = await client.gateway(
            "ResolveSourceMeta", gateway.ResolveSourceMetaRequest(source, linux), gateway.ResolveSourceMetaResponse
        )
        assert meta.source is not None and meta.source.identifier == "docker-image://x@sha256:1"
        assert meta.image is not None and meta.image.config == b"{}"
    assert builder.questions == [("x", "linux/amd64", True), ("x", "linux/amd64", False)]


async def test_other_sources_are_looked_up() -> None:
    async with building(FakeBuilder()) as (client, _):
        answers = {}
        for identifier in ("git://x/y#v1", "https://x/file", "local://context"):
            asked = gateway.ResolveSourceMetaRequest(ops.SourceOp(identifier))
            answers[identifier] = await client.gateway("ResolveSourceMeta", asked, gateway.ResolveSourceMetaResponse)
            assert answers[identifier].source == ops.SourceOp(identifier)
    assert answers["git://x/y#v1"].git == gateway.ResolveSourceGitResponse("a" * 40, "refs/tags/v1", "b" * 40)
    assert answers["https://x/file"].http == gateway.ResolveSourceHTTPResponse("sha256:1", "file", Timestamp(981173106))


async def test_inputs_and_warnings() -> None:
    builder = FakeBuilder()
    async with building(builder) as (client, _):
        given = await client.gateway("Inputs", gateway.Empty(), gateway.InputsResponse)
        assert len(ops.Definition.decode(given.definitions["in"]).definition) == 3
        lines = ops.Range(ops.Position(2), ops.Position(3))
        info = ops.SourceInfo("Dockerfile", b"x", None, "Dockerfile")
        warning = gateway.WarnRequest("d", 1, b"short", [b"long"], "url", info, [lines])
        await client.gateway("Warn", warning, gateway.Empty)
        job = await builder.job("b")
        assert "short" in repr(job.log.told[-1])


@pytest.mark.parametrize(
    ("method", "message", "build", "code"),
    [
        ("Ping", gateway.Empty(), "other", NOT_FOUND),
        ("ReadFile", gateway.ReadFileRequest("none", "/x"), "b", NOT_FOUND),
        ("ResolveSourceMeta", gateway.ResolveSourceMetaRequest(ops.SourceOp("other://x")), "b", UNIMPLEMENTED),
        ("ResolveSourceMeta", gateway.ResolveSourceMetaRequest(ops.SourceOp("x")), "b", INVALID_ARGUMENT),
        ("ResolveSourceMeta", gateway.ResolveSourceMetaRequest(), "b", INVALID_ARGUMENT),
        ("NewContainer", gateway.NewContainerRequest("c"), "b", INVALID_ARGUMENT),
        ("Solve", gateway.SolveRequest(definition=ops.Definition([b"\xff"]).encode()), "b", INVALID_ARGUMENT),
    ],
)
async def test_what_cannot_be_done_is_said(method: str, message: Message, build: str, code: int) -> None:
    async with building(FakeBuilder()) as (client, _):
        with pytest.raises(GrpcError) as caught:
            await client.gateway(method, message, gateway.Empty, build)
        assert caught.value.code == code


async def test_what_a_frontends_own_policy_denies_it_does_not_get() -> None:
    denied = Policy(1, [Rule(1, Selector("*"))])
    questions = (
        ("ResolveSourceMeta", gateway.ResolveSourceMetaRequest(ops.SourceOp("https://x/y"), source_policies=[denied])),
        ("ResolveImageConfig", gateway.ResolveImageConfigRequest("x", source_policies=[denied])),
        ("Solve", gateway.SolveRequest(definition(*chain("m")).encode(), evaluate=True, source_policies=[denied])),
    )
    async with building(FakeBuilder()) as (client, _):
        for method, message in questions:
            with pytest.raises(GrpcError, match="denied by policy"):
                await client.gateway(method, message, gateway.Empty)


def test_modes_are_gos() -> None:
    assert stat_message(entry("l", 0o120777, link="t")).mode == 1 << 27 | 0o777
    assert stat_message(entry("b\udcff", 0o100644)).path == "b\ufffd"
    assert stat_message(entry("d", 0o020600, major=1)).mode == 1 << 26 | 1 << 21 | 0o600
    assert stat_message(entry("s", 0o104755)).mode == 1 << 23 | 0o755


async def test_images_of_a_layout_can_be_asked_for_in_both_ways() -> None:
    builder = FakeBuilder()
    linux = ops.Platform("amd64", "linux")
    async with building(builder) as (client, _):
        asked = gateway.ResolveImageConfigRequest("x@sha256:1", linux, resolver_type=1, session_id="s", store_id="l")
        config = await client.gateway("ResolveImageConfig", asked, gateway.ResolveImageConfigResponse)
        assert (config.digest, config.config) == ("sha256:1", b"{}")
        source = ops.SourceOp("oci-layout://x@sha256:1", {"oci.store": "l"})
        meta = await client.gateway(
            "ResolveSourceMeta", gateway.ResolveSourceMetaRequest(source, linux), gateway.ResolveSourceMetaResponse
        )
    assert meta.source == source
    assert meta.image is not None and meta.image.digest == "sha256:1"
    attributes = [dict(one[1]) for one in builder.questions if isinstance(one, tuple)]
    assert attributes == [{"oci.store": "l", "oci.session": "s"}, {"oci.store": "l"}]
