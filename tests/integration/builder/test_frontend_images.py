"""`# syntax=` with an image of its own: a frontend in a container, which a test plays."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.builder.graph import ops
from husk.builder.graph.graph import Graph
from husk.builder.graph.llb_write import definition
from husk.builder.graph.operations import Files, NestedBuild, Operation, Source
from husk.builder.protocol.messages import gateway
from husk.builder.protocol.messages.common import Status
from husk.builder.store.file_actions import NONE, FileAction, MakeFile
from husk.registry.manifest import host_platform
from husk.rpc.grpc.status import GrpcError
from tests.support.building import Builds, buildkit_builds, needs_buildx
from tests.support.daemon import Daemon
from tests.support.frontend_image import SERVICE, Calls, FrontendImage
from tests.support.terminal import Terminal

pytestmark = needs_buildx


@pytest.fixture
def builds(daemon: Daemon, tmp_path: Path) -> Iterator[Builds]:
    with buildkit_builds(daemon, tmp_path) as builds:
        yield builds


def one_file(text: bytes) -> gateway.SolveRequest:
    graph = Graph()
    make = MakeFile(path="/said", mode=0o644, data=text)
    edge = graph.add(Operation(Files([FileAction(action=make, input=NONE, output=0)])), name="write what was said")
    return gateway.SolveRequest(definition=definition(graph, edge).encode(), allow_result_return=True)


async def echo(calls: Calls) -> None:
    """Makes an image of the options that it was given."""
    pong = await calls.call("Ping", gateway.Empty(), gateway.PongResponse)
    assert pong.workers
    text = json.dumps(calls.options).encode()
    solved = await calls.call("Solve", one_file(text), gateway.SolveResponse)
    assert solved.result is not None
    ref = solved.result.ref
    assert ref is not None
    read = await calls.call("ReadFile", gateway.ReadFileRequest(ref.id, "/said"), gateway.ReadFileResponse)
    assert read.data == text
    with pytest.raises(GrpcError, match="no such ref"):
        await calls.call("ReadFile", gateway.ReadFileRequest("other", "/said"), gateway.ReadFileResponse)
    config = {"architecture": "amd64", "os": "linux", "config": {"Labels": {"made": "by echo"}}}
    metadata = {"containerimage.config": json.dumps(config).encode()}
    returned = gateway.ReturnRequest(gateway.Result(ref=gateway.Ref(ref.id), metadata=metadata))
    await calls.call("Return", returned, gateway.Empty)


async def test_a_frontend_makes_an_image_of_what_it_is_told(builds: Builds, daemon: Daemon) -> None:
    async with FrontendImage(builds, daemon, echo) as image:
        done = await image.build("# syntax=frontend\nwhatever it reads\n", "--build-arg", "A=b")
        assert "resolve image config for docker-image://docker.io/library/frontend:latest" in done.stderr
        assert "write what was said" in done.stderr
        assert builds.config()["Labels"] == {"made": "by echo"}
        container = daemon.docker("create", "built", "x").stdout.strip()
        daemon.docker("cp", f"{container}:/said", str(builds.context.path.parent / "said"))
        said = json.loads((builds.context.path.parent / "said").read_text())
        assert (said["build-arg:A"], said["source"], said["cmdline"]) == ("b", "frontend", "frontend")
        await image.build("FROM nothing-of-this\n", "--build-arg", "BUILDKIT_SYNTAX=frontend with words")
        daemon.docker("rm", container)


async def look_around(calls: Calls) -> None:
    """Looks into an image, and runs processes in it."""
    base = await calls.call(
        "ResolveImageConfig", gateway.ResolveImageConfigRequest("busybox"), gateway.ResolveImageConfigResponse
    )
    assert base.digest
    graph = Graph()
    edge = graph.add(Operation(Source("docker-image://docker.io/library/busybox:latest"), [], host_platform()))
    request = gateway.SolveRequest(definition=definition(graph, edge).encode(), allow_result_return=True, evaluate=True)
    solved = await calls.call("Solve", request, gateway.SolveResponse)
    ref = solved.result.ref.id  # type: ignore[union-attr]
    found = await calls.call("StatFile", gateway.StatFileRequest(ref, "/bin/sh"), gateway.StatFileResponse)
    assert found.stat is not None
    assert (found.stat.path, found.stat.mode & 0o777) == ("sh", 0o755)
    listed = await calls.call("ReadDir", gateway.ReadDirRequest(ref, "/bin", "s[hu]"), gateway.ReadDirResponse)
    assert {one.path for one in listed.entries} == {"sh", "su"}
    with pytest.raises(GrpcError, match="/nosuch: no such file"):
        await calls.call("ReadDir", gateway.ReadDirRequest(ref, "/nosuch"), gateway.ReadDirResponse)
    with pytest.raises(GrpcError, match="is not a directory"):
        await calls.call("ReadDir", gateway.ReadDirRequest(ref, "/bin/sh"), gateway.ReadDirResponse)
    inner = one_file(b"from within").definition
    assert inner is not None
    graph = Graph()
    make = MakeFile(path="/buildkit.llb.definition", mode=0o644, data=inner)
    given = graph.add(Operation(Files([FileAction(action=make, input=NONE, output=0)])))
    within = graph.add(Operation(NestedBuild(NONE, {"buildkit.llb.definition": 0}), [given]), name="a build within")
    request = gateway.SolveRequest(definition=definition(graph, within).encode(), allow_result_return=True)
    solved = await calls.call("Solve", request, gateway.SolveResponse)
    made = solved.result.ref.id  # type: ignore[union-attr]
    read = await calls.call("ReadFile", gateway.ReadFileRequest(made, "/said"), gateway.ReadFileResponse)
    assert read.data == b"from within"
    root = ops.Mount(dest="/", input=NONE, result_id=ref)
    await calls.call("NewContainer", gateway.NewContainerRequest("c", [root], network=2), gateway.Empty)
    async with await calls.connection.call(f"{SERVICE}/ExecProcess") as stream:
        meta = ops.Meta(args=["sh", "-c", "cat; echo $PWD >&2; exit 5"], cwd="/tmp")
        await stream.send(gateway.ExecMessage("p", init=gateway.InitMessage("c", meta, [0, 1, 2])).encode())
        await stream.send(gateway.ExecMessage("p", file=gateway.FdMessage(0, True, b"hello")).encode())
        said: dict[int, bytes] = {}
        while True:
            data = await stream.recv()
            assert data is not None
            message = gateway.ExecMessage.decode(data)
            if message.file is not None:
                said[message.file.fd] = said.get(message.file.fd, b"") + message.file.data
            if message.exit is not None:
                assert message.exit.code == 5
            if message.done is not None:
                break
        assert said == {1: b"hello", 2: b"/tmp\n"}
        with pytest.raises(GrpcError, match="already exists"):
            await calls.call("NewContainer", gateway.NewContainerRequest("c", [root]), gateway.Empty)
    returned = gateway.ReturnRequest(gateway.Result(ref=gateway.Ref(ref)))
    await calls.call("Return", returned, gateway.Empty)


async def test_a_frontend_looks_into_results_and_runs_processes(builds: Builds, daemon: Daemon) -> None:
    async with FrontendImage(builds, daemon, look_around) as image:
        await image.build("# syntax=frontend\n")


def test_a_client_looks_around_in_a_result(builds: Builds) -> None:
    builds.context.write({"Dockerfile": "FROM busybox\nENV A=b\nRUN echo made > /made\n"})
    environment = {**builds.environment, "BUILDX_EXPERIMENTAL": "1"}
    command = ["docker", "buildx", "debug", "--invoke", "/bin/sh", "--on", "always", "build", str(builds.context.path)]
    with Terminal(command, environment) as terminal:
        terminal.expect(b"Press Ctrl-a-c")
        terminal.expect(b"# ")
        terminal.type(b"cat /made; echo A is $A; busybox tty\r")
        assert b"\nmade" in terminal.expect(b"A is b")
        terminal.expect(b"/dev/pts/0")
        terminal.type(b"exit\r")
        terminal.expect(b"(buildx)")
        terminal.type(b"exit\r")
        assert terminal.wait() == 0


def test_a_client_looks_around_where_a_step_has_failed(builds: Builds) -> None:
    dockerfile = (
        "FROM busybox\nENV A=b\nRUN echo made > /made\nRUN --mount=type=cache,target=/c echo left > /left; false\n"
    )
    builds.context.write({"Dockerfile": dockerfile})
    environment = {**builds.environment, "BUILDX_EXPERIMENTAL": "1"}
    command = ["docker", "buildx", "debug", "--invoke", "/bin/sh", "build", str(builds.context.path)]
    with Terminal(command, environment) as terminal:
        terminal.expect(b"Press Ctrl-a-c")
        terminal.expect(b"# ")
        terminal.type(b"cat /made /left; ls -d /c; echo A is $A\r")
        seen = terminal.expect(b"A is b")
        assert b"\nleft" in seen, "what the failed step itself has written is there"
        assert b"\nmade" in seen
        assert b"\n/c" in seen
        terminal.type(b"exit\r")
        terminal.expect(b"(buildx)")
        terminal.type(b"exit\r")
        assert terminal.wait() != 0


async def test_a_frontend_that_fails_says_so_with_the_line(builds: Builds, daemon: Daemon) -> None:
    async def refuse(calls: Calls) -> None:
        error = Status(code=2, message="I do not like it")
        await calls.call("Return", gateway.ReturnRequest(error=error), gateway.Empty)

    async with FrontendImage(builds, daemon, refuse) as image:
        done = await image.build("# syntax=frontend\n", check=False)
        assert "I do not like it" in done.stderr
        assert ">>> # syntax=frontend" in done.stderr
        for script, message in (
            ("echo oh no >&2; exit 3", "exit code: 3: oh no"),
            ("busybox head -c 100000 /dev/zero; sleep 1000", "hung up without a result"),
        ):
            await image.make(script)
            done = await image.build("# syntax=frontend\n", check=False)
            assert message in done.stderr


async def test_it_ends_with_the_client(builds: Builds, daemon: Daemon) -> None:
    came, gone = asyncio.Event(), asyncio.Event()

    async def hang(calls: Calls) -> None:
        came.set()
        await calls.connection.wait_closed()
        gone.set()

    async with FrontendImage(builds, daemon, hang):
        builds.context.write({"Dockerfile": "# syntax=frontend\n"})
        client = await asyncio.create_subprocess_exec(
            "docker", "build", str(builds.context.path), env=builds.environment, stderr=asyncio.subprocess.DEVNULL
        )
        async with asyncio.timeout(30):
            await came.wait()
            client.kill()
            await gone.wait()
            await client.wait()


def test_our_own_frontend_says_when_it_may_be_too_old(builds: Builds) -> None:
    done = builds.run("# syntax=docker/dockerfile:1.99\nFROM busybox\n")
    assert "docker/dockerfile:1.99 is newer than the frontend that is built in" in done.stderr
    assert "newer" not in builds.run("# syntax=docker/dockerfile:1\nFROM busybox\n").stderr
