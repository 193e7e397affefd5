"""The service Control, called over a connection, with doubles of what does the work."""

import asyncio

import pytest

from husk.builder.graph.llb_write import definition
from husk.builder.graph.ops import Definition
from husk.builder.jobs.results import Question
from husk.builder.protocol.control import build_request
from husk.builder.protocol.messages import control
from husk.builder.protocol.messages.gateway import Empty, InputsResponse, ReturnRequest
from husk.builder.protocol.messages.source_policy import Policy, Rule
from husk.errors import NotFound
from husk.rpc.grpc.status import INVALID_ARGUMENT, NOT_FOUND, UNKNOWN, GrpcError
from husk.rpc.protobuf import Message
from tests.unit.builder.protocol.fake_builder import FakeBuilder, calling, serving_control
from tests.unit.builder.solver.solving import chain


async def test_a_definition_is_built_and_told_about() -> None:
    builder = FakeBuilder()
    request = control.SolveRequest(ref="b", definition=definition(*chain("make")).encode())
    async with calling(builder) as client:
        told = asyncio.gather(
            client.many("Status", control.StatusRequest("b"), control.StatusResponse),
            client.control("Solve", request, control.SolveResponse),
        )
        answers, solved = await told
    assert solved.exporter_response["stacks"] == "make(image())"
    vertexes = [vertex for answer in answers for vertex in answer.vertexes]
    assert {vertex.name for vertex in vertexes if vertex.completed} == {"image", "make"}


async def test_an_internal_build_that_has_ended_before_it_is_asked_for_has_told_nothing() -> None:
    request = control.SolveRequest(ref="b", internal=True, definition=definition(*chain("make")).encode())
    async with calling(FakeBuilder()) as client:
        await client.control("Solve", request, control.SolveResponse)
        assert await client.many("Status", control.StatusRequest("b"), control.StatusResponse) == []


async def test_a_client_that_works_itself_is_waited_for() -> None:
    builder = FakeBuilder()
    async with calling(builder) as client:
        solving = asyncio.gather(client.control("Solve", control.SolveRequest(ref="b"), control.SolveResponse))
        await client.gateway("Return", ReturnRequest(), Empty)
        assert (await solving)[0].exporter_response == {"stacks": ""}
    assert builder.builds[0].question is None


async def test_a_build_ends_with_its_client() -> None:
    builder = FakeBuilder()
    async with calling(builder) as client:
        stream = await client.connection.call("/moby.buildkit.v1.Control/Solve")
        await stream.send(control.SolveRequest(ref="b").encode())
        await builder.job("b")
    assert len(builder.builds) == 1
    with pytest.raises(Exception, match="no such job"):
        await builder.bench.jobs.get("b", patience=0)


async def test_workers_and_version() -> None:
    async with calling(FakeBuilder()) as client:
        listed = await client.control("ListWorkers", control.ListWorkersRequest(), control.ListWorkersResponse)
        assert [worker.id for worker in listed.record] == ["w"]
        info = await client.control("Info", control.InfoRequest(), control.InfoResponse)
        assert info.buildkit_version is not None and info.buildkit_version.version.startswith("v0.")


async def test_the_cache_is_listed_and_pruned() -> None:
    builder = FakeBuilder()
    async with calling(builder) as client:
        request = control.DiskUsageRequest(["type==regular", "type==internal"])
        usage = await client.control("DiskUsage", request, control.DiskUsageResponse)
        assert [(record.id, record.parents, record.usage_count) for record in usage.record] == [("r1", ["r0"], 3)]
        wanted = control.PruneRequest(all=True, keep_duration=60 * 10**9, reserved_space=9)
        (gone,) = await client.many("Prune", wanted, control.UsageRecord)
        assert gone.id == "r1"
    assert builder.questions == [["regular"], ["internal"], (["60s"], True, 9)]


@pytest.mark.parametrize(
    ("method", "message", "code"),
    [
        ("Solve", control.SolveRequest(), UNKNOWN),
        ("Solve", control.SolveRequest(ref="x", source_policy=Policy(rules=[Rule(action=9)])), INVALID_ARGUMENT),
        ("Solve", control.SolveRequest(ref="x", frontend="gopher"), UNKNOWN),
        ("Solve", control.SolveRequest(ref="x", definition=Definition([b"\xff"]).encode()), INVALID_ARGUMENT),
        ("Status", control.StatusRequest("none"), NOT_FOUND),
        ("UpdateBuildHistory", control.UpdateBuildHistoryRequest("none"), NOT_FOUND),
    ],
)
async def test_what_cannot_be_done_is_said(method: str, message: Message, code: int) -> None:
    async with calling(FakeBuilder()) as client:
        with pytest.raises(GrpcError) as caught:
            await client.control(method, message, control.SolveResponse)
        assert caught.value.code == code


def test_old_clients_name_their_exporter_elsewhere() -> None:
    request = control.SolveRequest(ref="b", old_exporter="image", old_exporter_attrs={"name": "x"}, frontend="f")
    request.cache = control.CacheOptions(imports=[control.CacheOptionsEntry("local", {"src": "d"})])
    read = build_request(request, Question(frontend="f"))
    assert [(one.kind, dict(one.attributes)) for one in read.exports] == [("image", {"name": "x"})]
    assert [one.kind for one in read.cache_imports] == ["local"]
    assert read.question == Question(frontend="f")


async def test_builds_that_ended_are_known_and_can_be_followed_again() -> None:
    builder = FakeBuilder()
    asked = control.BuildHistoryRequest(early_exit=True)
    async with calling(builder) as client:
        request = control.SolveRequest(ref="b", definition=definition(*chain("make")).encode())
        await client.control("Solve", request, control.SolveResponse)
        with pytest.raises(GrpcError):
            await client.control("Solve", control.SolveRequest(ref="c", frontend="gopher"), control.SolveResponse)
        events = await client.many("ListenBuildHistory", asked, control.BuildHistoryEvent)
        good, bad = [event.record for event in events if event.record]
        assert (good.ref, good.error, good.total_steps, good.completed_steps) == ("b", None, 2, 2)
        assert bad.error is not None and "gopher" in bad.error.message
        again = await client.many("Status", control.StatusRequest("b"), control.StatusResponse)
        assert {vertex.name for answer in again for vertex in answer.vertexes} == {"image", "make"}
        assert len(builder.kept.read_files) == 1, "what it told is read once"
        gone = control.UpdateBuildHistoryRequest("b", delete=True)
        await client.control("UpdateBuildHistory", gone, control.UpdateBuildHistoryResponse)
        assert len(await client.many("ListenBuildHistory", asked, control.BuildHistoryEvent)) == 1


@pytest.mark.parametrize(
    ("failure", "message"), [(OSError("no space"), "no space"), (asyncio.CancelledError(), "context canceled")]
)
async def test_a_build_of_others_that_fails_is_remembered_as_failed(failure: BaseException, message: str) -> None:
    served = serving_control(FakeBuilder())
    with pytest.raises(type(failure)):
        async with served.history.noted(control.SolveRequest(ref="b")):
            raise failure
    listened = served.listen_history(control.BuildHistoryRequest(early_exit=True), {})
    (record,) = [event.record async for event in listened if event.record]
    assert record.error is not None and record.error.message == message


async def test_a_build_of_others_is_followed_and_remembered() -> None:
    served = serving_control(FakeBuilder())
    graph, edge = chain("make")
    vertex = graph[edge.digest]
    following = served.status(control.StatusRequest("b"), {})
    with pytest.raises(NotFound):
        async with served.history.noted(control.SolveRequest(ref="b")) as log:
            log.started(vertex)
            assert [one.name for one in (await anext(following)).vertexes] == ["make"]
            raise NotFound("no such file")
    assert [answer async for answer in following] == []
    listened = served.listen_history(control.BuildHistoryRequest(early_exit=True), {})
    (record,) = [event.record async for event in listened if event.record]
    assert (record.ref, record.total_steps, record.completed_steps) == ("b", 1, 0)
    assert record.error is not None and record.error.message == "no such file"
    again = [one async for one in served.status(control.StatusRequest("b"), {})]
    assert [one.name for answer in again for one in answer.vertexes] == ["make"]


@pytest.mark.parametrize("internal", [False, True])
async def test_a_second_build_of_the_same_name_is_refused_and_takes_nothing(internal: bool) -> None:
    builder = FakeBuilder()
    wanted = {"base": definition(*chain("make")).encode()}
    async with calling(builder) as client:
        stream = await client.connection.call("/moby.buildkit.v1.Control/Solve")
        await stream.send(control.SolveRequest(ref="b", frontend_inputs=wanted, internal=internal).encode())
        await builder.job("b")
        with pytest.raises(GrpcError, match="job ID b exists"):
            await client.control("Solve", control.SolveRequest(ref="b", internal=internal), control.SolveResponse)
        inputs = await client.gateway("Inputs", Empty(), InputsResponse)
        assert list(inputs.definitions) == ["base"]
