"""Errors of ours and how clients see them."""

import base64
import json
from typing import Any

import pytest

from husk.builder.graph import operations, ops
from husk.builder.graph.graph import Location, SourceFile
from husk.builder.graph.operations import Operation, Source
from husk.builder.jobs.failure import BuildFailed, FailedStep, UnknownQuestion
from husk.builder.protocol.errors import failed_build, from_status, to_grpc
from husk.builder.protocol.messages.common import Status
from husk.errors import DiskFault, HuskError, InvalidParameter, NotFound, NotImplementedYet
from husk.rpc.grpc import status


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidParameter("x"), status.INVALID_ARGUMENT),
        (NotFound("x"), status.NOT_FOUND),
        (NotImplementedYet("x"), status.UNIMPLEMENTED),
        (DiskFault("x"), status.INTERNAL),
        (HuskError("x"), status.UNKNOWN),
    ],
)
def test_each_kind_has_a_code(error: HuskError, code: int) -> None:
    told = to_grpc(error)
    assert (told.code, told.message, told.details) == (code, "x", b"")


def test_details_name_the_vertex_and_the_lines() -> None:
    source = SourceFile("Dockerfile", b"FROM x\n")
    error = failed_build(BuildFailed("bad", vertex="sha256:v", source=source, locations=[Location(0, 1, 2)]))
    told = Status.decode(error.details)
    assert (error.code, told.code, told.message) == (status.UNKNOWN, status.UNKNOWN, "bad")
    vertex, place = told.details
    assert vertex.type_url == "github.com/moby/buildkit/errdefs.Vertex+json"
    assert json.loads(vertex.value) == {"digest": "sha256:v"}
    assert place.type_url == "github.com/moby/buildkit/errdefs.Source+json"
    assert json.loads(place.value) == {
        "info": {"filename": "Dockerfile", "data": "RlJPTSB4Cg==", "language": "Dockerfile"},
        "ranges": [{"start": {"line": 1}, "end": {"line": 2}}],
    }


def test_details_tell_how_the_file_came_and_which_letters() -> None:
    local = Operation(Source("local://dockerfile", {"k": "v"}))
    source = SourceFile("Dockerfile", b"FROM x\n", loaded=[local])
    told = place_of(BuildFailed("bad", source=source, locations=[Location(0, 1, 2, 3, 4)]))
    assert told["ranges"] == [{"start": {"line": 1, "character": 3}, "end": {"line": 2, "character": 4}}]
    first, last = (ops.Op.decode(base64.b64decode(one)) for one in told["info"]["definition"]["def"])
    assert first.source is not None
    assert (first.source.identifier, len(last.inputs)) == ("local://dockerfile", 1)


@pytest.mark.parametrize("definition", [b"\xff\xff", b"\x0a\x00" * 40_000])
def test_what_cannot_be_told_of_how_a_file_came_is_left_out(definition: bytes) -> None:
    source = SourceFile("Dockerfile", b"FROM x\n", definition=definition)
    told = place_of(BuildFailed("bad", source=source, locations=[Location(0, 1, 1)]))
    assert "definition" not in told["info"]


def place_of(error: BuildFailed) -> Any:
    (place,) = Status.decode(failed_build(error).details).details
    return json.loads(place.value)


def test_a_failed_build_has_no_code_that_clients_would_show() -> None:
    told = failed_build(NotFound("no such image"))
    assert (told.code, told.message, told.details) == (status.UNKNOWN, "no such image", b"")


def test_what_a_client_says_is_an_error_of_ours() -> None:
    assert isinstance(from_status(Status(status.NOT_FOUND, "gone")), NotFound)
    assert from_status(Status(status.UNKNOWN, "odd")).message == "odd"


def test_a_question_that_nobody_knows_has_its_name() -> None:
    (named,) = Status.decode(failed_build(UnknownQuestion("frontend.x")).details).details
    assert named.type_url == "github.com/moby/buildkit/errdefs.Subrequest+json"
    assert json.loads(named.value) == {"name": "frontend.x"}


def test_what_is_said_about_a_failure_elsewhere_is_handed_on() -> None:
    source = SourceFile("Dockerfile", b"FROM x\n")
    told = failed_build(BuildFailed("bad", source=source, locations=[Location(0, 1, 1)]))
    again = failed_build(from_status(Status.decode(told.details)))
    assert (again.message, again.details) == ("bad", told.details)


def test_a_step_that_failed_is_described_for_whoever_wants_to_look_around_there() -> None:
    mounts = [
        operations.ExecMount(target="/", input=0, output=0),
        operations.ExecMount(target="/c", kind=operations.CacheMount("cache")),
        operations.ExecMount(target="/t", kind=operations.TmpfsMount()),
        operations.ExecMount(target="/s", kind=operations.SecretMount("secret")),
        operations.ExecMount(target="/a", kind=operations.SshMount("default")),
        operations.ExecMount(target="/b", input=1, selector="/x", read_only=True),
    ]
    process = operations.ProcessSpec(args=["make"], env=["A=b"], cwd="/w", user="u")
    step = FailedStep(operations.Exec(process=process, mounts=mounts), ["one", "two"])
    described = Status.decode(failed_build(BuildFailed("bad", vertex="v"), step).details).details[-1]
    assert described.type_url == "github.com/moby/buildkit/errdefs.Solve+json"
    told = json.loads(described.value)
    assert (told["inputIDs"], told["mountIDs"]) == (["one", "two"], ["one", "", "", "", "", "two"])
    left = FailedStep(operations.Exec(process=process, mounts=mounts), ["one", "two"], ["left"])
    described = Status.decode(failed_build(BuildFailed("bad", vertex="v"), left).details).details[-1]
    assert json.loads(described.value)["mountIDs"] == ["left", "", "", "", "", "two"]
    run = told["op"]["exec"]
    assert run["meta"] == {"args": ["make"], "env": ["A=b"], "cwd": "/w", "user": "u"}
    assert [one.get("mountType", "BIND") for one in run["mounts"]] == [
        "BIND",
        "CACHE",
        "TMPFS",
        "SECRET",
        "SSH",
        "BIND",
    ]
