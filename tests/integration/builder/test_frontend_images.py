"""`# syntax=` with an image of its own: a frontend in a container, which a test plays."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.api.buildkit.llb_write import definition
from husk.api.buildkit.messages import gateway
from husk.api.buildkit.messages.common import Status
from husk.api.grpc.status import GrpcError
from husk.engine.builder.graph import Graph
from husk.engine.builder.operations import NONE, FileAction, Files, MakeFile, Operation
from tests.support.build_client import PLUGIN
from tests.support.building import Builds, Context
from tests.support.daemon import Daemon
from tests.support.frontend_image import Calls, FrontendImage
from tests.support.images import forget_images

pytestmark = pytest.mark.skipif(not PLUGIN.exists(), reason="docker buildx is not here: scripts/setup --test")


@pytest.fixture
def builds(daemon: Daemon, tmp_path: Path) -> Iterator[Builds]:
    context = tmp_path / "context"
    context.mkdir()
    yield Builds(daemon, Context(context), buildkit=True)
    forget_images(daemon)
    daemon.docker("builder", "prune", "-af")


def one_file(text: bytes) -> gateway.SolveRequest:
    graph = Graph()
    make = MakeFile(path="/said", mode=0o644, data=text)
    edge = graph.add(Operation(Files([FileAction(action=make, input=NONE, output=0)])), name="write what was said")
    return gateway.SolveRequest(definition=definition(graph, edge), allow_result_return=True)


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


async def test_a_frontend_that_fails_says_so_with_the_line(builds: Builds, daemon: Daemon) -> None:
    async def refuse(calls: Calls) -> None:
        error = Status(code=2, message="I do not like it")
        await calls.call("Return", gateway.ReturnRequest(error=error), gateway.Empty)

    async def silent(calls: Calls) -> None:
        pass

    async with FrontendImage(builds, daemon, refuse) as image:
        done = await image.build("# syntax=frontend\n", check=False)
        assert "I do not like it" in done.stderr
        assert ">>> # syntax=frontend" in done.stderr
        image._work = silent
        done = await image.build("# syntax=frontend\n", check=False)
        assert "without a result" in done.stderr
        for script, message in (
            ("echo oh no >&2; exit 3", "exit code: 3: oh no"),
            ("busybox head -c 100000 /dev/zero; sleep 1000", "hung up without a result"),
            ("exec /nosuch", "exit code: 127"),
        ):
            await image.make(script)
            done = await image.build("# syntax=frontend\n", check=False)
            assert message in done.stderr
        await image.make("true", 'LABEL moby.buildkit.frontend.network.none="true"\n')
        done = await image.build("# syntax=nosuch/image-here:1\n", check=False)
        assert done.returncode != 0


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
