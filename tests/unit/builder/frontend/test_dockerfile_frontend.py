"""The built-in frontend, with doubles of the client's directories and of images."""

import asyncio
import base64
import json
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec import structs

from husk.aio.tasks import Tasks
from husk.builder.dockerfile.options import BaseImage
from husk.builder.frontend.dockerfile_frontend import DockerfileFrontend
from husk.builder.frontend.reading.dockerfiles import Dockerfiles
from husk.builder.graph.operations import Source
from husk.builder.graph.ops import Op
from husk.builder.jobs.failure import BuildFailed, MissingCapability
from husk.builder.solver.asking import Asker
from husk.builder.solver.solver import Solver
from husk.builder.solver.source_policy import DescribedImage
from husk.builder.sources import layouts as layout_source
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.image import ImageConfig, RootFS
from husk.errors import HuskError, InvalidParameter, NotFound, NotImplementedYet
from tests.support.machine import ARCHITECTURE
from tests.support.parsing import Here
from tests.unit.builder.solver.solving import Memory, Watch, Worker

BASE = ImageConfig(
    architecture=ARCHITECTURE, os="linux", config=ContainerConfig(), rootfs=RootFS(diff_ids=["sha256:d"])
)


class Layouts:
    """A client's OCI layouts."""

    async def describe_named(self, text, platform, watcher):
        layout_source.named(text)
        return DescribedImage("sha256:laid", "sha256:laid", msgspec.json.encode(BASE))


def layouts() -> Any:
    return Layouts()


class Client:
    """A client's directories: files by the name of the vertex that fetches them."""

    def __init__(self, **files):
        self.files = {name.replace("__", "."): text.encode() for name, text in files.items()}

    async def read(self, stack, path, most):
        return self.files.get(path)


class Images:
    def __init__(self):
        self.asked = []

    async def look_up(self, name, platform, pull, watcher):
        self.asked.append((name, str(platform), pull))
        if name == "missing":
            raise NotFound("no such image")
        return BaseImage(f"docker.io/library/{name}:latest", BASE)


class Bench:
    def __init__(self) -> None:
        self.images: Any = Images()
        self.watch: Any = Watch()
        self.worker: Any = Worker()
        self.memory: Any = Memory()

    async def solve(self, files: Any, inputs: Any = None, **attributes: str) -> Any:
        frontend = DockerfileFrontend(
            Solver(self.worker, self.memory), files, self.images, layouts, Dockerfiles(Here())
        )
        session: Any = SimpleNamespace(id="s1")
        return await frontend.solve(
            {name.replace("__", ":"): value for name, value in attributes.items()},
            Asker(self.watch, session, inputs or {}),
        )


@pytest.fixture
def bench() -> Bench:
    return Bench()


def sources(built):
    found = [vertex.operation.body for vertex in built.ref.graph]
    return {body.identifier: body.attributes for body in found if isinstance(body, Source)}


async def test_a_dockerfile_becomes_a_ref(bench):
    result = await bench.solve(Client(Dockerfile="FROM busybox\nCOPY a /b\nCMD x", __dockerignore="*.o\n"))
    (built,) = result.built
    assert built.image.config.cmd == ["/bin/sh", "-c", "x"]
    assert built.ref.edge is not None
    assert result.source.content.startswith(b"FROM busybox")
    context = sources(built)["local://context"]
    assert json.loads(context["local.excludepatterns"]) == ["*.o"]
    assert json.loads(context["local.followpaths"]) == ["a"]
    assert context["local.session"] == "s1"
    assert bench.memory.held == [], "what was only read is let go of"


async def test_the_dockerfile_says_how_it_came_to_whoever_asks(bench):
    result = await bench.solve(Client(Dockerfile="FROM busybox"))
    (loaded,) = result.source.loaded
    assert loaded.body.identifier == "local://dockerfile"
    assert json.loads(loaded.body.attributes["local.followpaths"])[0] == "Dockerfile"
    assert "local.session" not in loaded.body.attributes
    (built,) = result.built
    assert built.ref.graph.files == [result.source]


async def test_an_address_that_a_dockerfile_came_from_is_told_without_a_password(bench):
    result = await bench.solve(Client(Dockerfile="FROM busybox"), context="https://me:hidden@host.invalid/x.git")
    assert "hidden" not in repr(result.source.loaded)
    assert not [name for name in bench.watch.ends() if "hidden" in name]


async def test_what_is_shown_before_the_first_step(bench):
    await bench.solve(Client(Dockerfile="FROM busybox"))
    assert bench.watch.ends() == {
        "[internal] load build definition from Dockerfile": "done",
        "[internal] load .dockerignore": "done",
        "[internal] load metadata for docker.io/library/busybox:latest": "done",
    }


async def test_an_ignore_file_of_its_own_comes_first(bench):
    files = {"b.Dockerfile": "FROM busybox\nCOPY . .", "b.Dockerfile.dockerignore": "x", "__dockerignore": "y"}
    result = await bench.solve(Client(**files), filename="b.Dockerfile")
    assert json.loads(sources(result.built[0])["local://context"]["local.excludepatterns"]) == ["x"]


async def test_both_files_are_asked_for_at_once_and_shown_in_one_order(bench):
    bench.worker.gate = asyncio.Event()
    solving = Tasks().spawn(bench.solve(Client(Dockerfile="FROM busybox")), "solve", awaited=True)
    async with asyncio.timeout(30):
        while len(bench.worker.running) < 2:
            await asyncio.sleep(0)
    bench.worker.gate.set()
    await solving
    started = [name for name, what in bench.watch.told if what == "started"]
    assert started[:2] == ["[internal] load build definition from Dockerfile", "[internal] load .dockerignore"]


async def test_without_a_dockerfile_nothing_stays_under_way(bench):
    with pytest.raises(InvalidParameter, match=r"open Dockerfile: no such file or directory"):
        await bench.solve(Client(__dockerignore="y"))
    assert set(bench.watch.ends().values()) == {"done"}
    assert bench.memory.held == [] and not bench.worker.running


async def test_a_client_that_goes_away_leaves_nothing_under_way(bench):
    bench.worker.gate = asyncio.Event()
    solving = Tasks().spawn(bench.solve(Client(Dockerfile="FROM busybox")), "solve", awaited=True)
    async with asyncio.timeout(30):
        while len(bench.worker.running) < 2:
            await asyncio.sleep(0)
    solving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await solving
    assert bench.memory.held == [] and not bench.worker.running
    assert set(bench.watch.ends().values()) == {"cancelled"}


async def test_each_platform_has_a_ref_of_its_own(bench):
    result = await bench.solve(Client(Dockerfile="FROM busybox"), platform="linux/amd64,linux/arm64")
    assert [str(built.platform) for built in result.built] == ["linux/amd64", "linux/arm64"]
    assert result.several_platforms
    assert len(bench.images.asked) == 2


async def test_named_contexts(bench):
    result = await bench.solve(
        Client(Dockerfile="FROM base\nCOPY --from=src . .\nCOPY --from=laid x y\nCOPY --from=git x z"),
        context__base="docker-image://alpine",
        context__src="local:src",
        context__laid=f"oci-layout://store:v1@sha256:{'0' * 64}",
        context__git="https://example.com/x.git",
    )
    found = sources(result.built[0])
    assert {"docker-image://docker.io/library/alpine:latest", "docker-image://sha256:laid"} <= set(found)
    assert "git://example.com/x.git" in found
    assert found["local://src"] == {"local.sharedkeyhint": "src", "local.session": "s1"}


async def test_a_named_context_has_an_ignore_file_of_its_own(bench):
    client = Client(Dockerfile="FROM src\nCOPY --from=src . .", __dockerignore="*.o\n!keep.o\n")
    result = await bench.solve(client, context__src="local:other")
    assert json.loads(sources(result.built[0])["local://other"]["local.excludepatterns"]) == ["*.o", "!keep.o"]
    assert bench.worker.ran.count("[context src] load .dockerignore") == 1


async def test_an_ignore_file_of_a_named_context_that_is_none(bench):
    class Other(Client):
        """A directory whose `.dockerignore` is another than the context's."""

        async def read(self, stack, path, most):
            return b"!/\n" if "[context src]" in stack else await super().read(stack, path, most)

    with pytest.raises(BuildFailed, match=r'src: .dockerignore: illegal exclusion pattern: "!"'):
        await bench.solve(Other(Dockerfile="FROM src"), context__src="local:other")


async def test_an_image_that_cannot_be_had_is_told_with_its_line(bench):
    with pytest.raises(
        BuildFailed, match=r"missing: failed to resolve source metadata for .*/missing:latest: no such image"
    ):
        await bench.solve(Client(Dockerfile="FROM missing"))
    assert "no such image" in bench.watch.ends().values()


@pytest.mark.parametrize(
    ("attributes", "error"),
    [
        ({"filename": "other"}, InvalidParameter),
        ({"context": "ftp://example.com/x"}, InvalidParameter),
        ({"context": "https://example.com/x.git?tag=1&branch=2"}, InvalidParameter),
        ({"requestid": "frontend.other"}, NotImplementedYet),
        ({"frontend.caps": "moby.buildkit.frontend.inputs,moby.other+forward"}, MissingCapability),
        ({"context__busybox": "oci-layout://x"}, BuildFailed),
        ({"context__busybox": "input:x"}, BuildFailed),
        ({"context__busybox": "ftp://x"}, BuildFailed),
    ],
)
async def test_what_cannot_be_is_refused(bench, attributes, error):
    with pytest.raises(error):
        await bench.solve(Client(Dockerfile="FROM busybox"), **attributes)


async def test_the_client_says_which_checks_count(bench):
    files = Client(Dockerfile="# check=skip=all\nFROM busybox\nCMD x\n")
    assert (await bench.solve(files)).warnings == []
    attributes = {"build-arg__BUILDKIT_DOCKERFILE_CHECK": "error=true"}
    with pytest.raises(BuildFailed, match="lint violation found for rules: JSONArgsRecommended"):
        await bench.solve(files, **attributes)


class Input:
    """A result of another build."""

    async def stack(self):
        return "diff:made"

    async def close(self):
        pass


async def test_a_context_that_a_frontend_has_made(bench):
    result = await bench.solve(Client(Dockerfile="FROM busybox\nCOPY a /b"), {"context": Input()})
    assert "stack://diff:made" in sources(result.built[0])
    assert "local://context" not in sources(result.built[0])


async def test_a_context_that_another_build_makes_has_its_settings(bench):
    image = structs.replace(BASE, config=ContainerConfig(env=["A=of the other"]))
    told = msgspec.json.encode({"containerimage.config": msgspec.json.encode(image)}).decode()
    given = {"context__base": "input:other", "input-metadata__other": told}
    result = await bench.solve(Client(Dockerfile="FROM base\nRUN x"), {"other": Input()}, **given)
    (built,) = result.built
    assert "A=of the other" in built.image.config.env
    assert "stack://diff:made" in sources(built)


@pytest.mark.parametrize("told", ["[", "[]", '{"containerimage.config": 5}', '{"containerimage.config": "W10="}', "\0"])
async def test_nonsense_about_an_input_is_refused(bench, told):
    given = {"context__base": "input:other", "input-metadata__other": told}
    with pytest.raises(HuskError):
        await bench.solve(Client(Dockerfile="FROM base\nRUN x"), {"other": Input()}, **given)


async def test_warnings_of_several_platforms_are_told_once(bench):
    dockerfile = Client(Dockerfile="FROM busybox\nMAINTAINER me\n")
    result = await bench.solve(dockerfile, platform="linux/amd64,linux/arm64")
    assert [one.rule for one in result.warnings].count("MaintainerDeprecated") == 1


async def test_warnings_of_a_file_that_cannot_be_built(bench):
    with pytest.raises(BuildFailed) as failed:
        await bench.solve(Client(Dockerfile="FROM busybox\nMAINTAINER me\nEXPOSE abc\n"))
    assert [one.rule for one in failed.value.warnings] == ["MaintainerDeprecated"]


@pytest.mark.parametrize("text", ["!", "a\n!\n", " ! ", "!/"])
async def test_a_pattern_that_brings_nothing_back_is_refused(bench, text):
    with pytest.raises(InvalidParameter, match='illegal exclusion pattern: "!"'):
        await bench.solve(Client(Dockerfile="FROM busybox\nCOPY . /\n", __dockerignore=text))


async def test_a_context_with_nothing_in_it(bench):
    result = await bench.solve(Client(Dockerfile="FROM thing"), context__thing="docker-image://scratch")
    assert result.built[0].ref.edge is None
    assert bench.images.asked == []


async def test_a_check_says_how_the_dockerfile_came(bench):
    result = await bench.solve(Client(Dockerfile="FROM busybox as one"), requestid="frontend.lint")
    (told,) = json.loads(result.answer["result.json"])["sources"]
    assert list(told) == ["filename", "data", "definition", "language"]
    made, last = (Op.decode(base64.b64decode(one)) for one in told["definition"]["def"])
    assert (
        made.source is not None
        and made.source.identifier == "local://dockerfile"
        and "local.session" not in made.source.attrs
    )
    (wanted,) = last.inputs
    assert wanted.digest in told["definition"]["metadata"]
