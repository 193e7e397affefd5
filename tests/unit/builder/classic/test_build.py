"""From a context and its Dockerfile to an image, with doubles of what does the work."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from husk.builder.classic.build import ClassicBuilder, ClassicRequest
from husk.builder.classic.seen_steps import SeenSteps
from husk.builder.dockerfile.options import BaseImage, Options
from husk.builder.frontend.reading.dockerfiles import Dockerfiles
from husk.builder.graph import stacks
from husk.builder.graph.operations import Exec, Files, Source
from husk.builder.solver.interfaces import Record
from husk.builder.solver.solver import Solver
from husk.builder.steps.plan import StepFailed
from husk.engine.images.make import chain_ids
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.image import HistoryEntry, ImageConfig, RootFS
from husk.errors import Forbidden, HuskError, InvalidParameter, NotFound
from husk.registry.reference import parse
from tests.support.machine import ARCHITECTURE
from tests.support.parsing import Here

LAYERS = RootFS(diff_ids=["sha256:d"])
BASE = ImageConfig(architecture=ARCHITECTURE, os="linux", config=ContainerConfig(), rootfs=LAYERS)
NAMES = [parse("me/it:1")]


class Tree:
    def __init__(self, **files):
        self.files = {name.replace("__", "."): text.encode() for name, text in files.items()}
        self.removed = []
        self.differences = []

    async def read(self, stack, path, most):
        return self.files.get(path)

    async def read_several(self, stack, paths, most):
        return [self.files.get(path) for path in paths]

    async def apply(self, actions, inputs, layered=False):
        self.removed += [action.action.path for action in actions]
        return [f"{inputs[0]} diff:without"]

    async def difference(self, lower, upper):
        self.differences.append((lower, upper))
        return "diff:all"


class Images:
    def __init__(self):
        self.asked = []
        self.here = {}
        self.base = BASE
        self.bases = {}

    async def resolve(self, name, platform, pull, credentials, report):
        self.asked.append((name, pull))
        return BaseImage(f"docker.io/library/{name}:latest", self.bases.get(name, self.base), f"id of {name}")

    async def find(self, name, platform):
        return self.here.get(name)


class Worker:
    def __init__(self):
        self.ran = []
        self.source_stack = ""
        self.fails = None

    def begin_anew(self, vertices):
        pass

    async def source_key(self, operation, watcher):
        return operation.body.identifier

    async def run(self, vertex, inputs, watcher):
        body = vertex.operation.body
        if self.fails and not isinstance(body, Source):
            raise self.fails
        self.ran.append(type(body))
        if isinstance(body, Source):
            return Record(vertex.digest, [self.source_stack or body.identifier])
        if isinstance(body, Exec):
            watcher.log(f"$ {body.process.args[-1]}\n".encode())
        return Record(vertex.digest, [f"{inputs[0]} +"])

    async def content_digest(self, output, selections):
        return output


class Memory:
    def __init__(self):
        self.held = 0
        self.forgotten = []

    async def forget(self, stack):
        self.forgotten.append(stack)

    async def release_unnamed(self, elements):
        raise AssertionError("all is remembered")

    async def find(self, key):
        return None

    def know(self, key):
        return None

    def is_whole(self, record):
        return not record.absent

    async def remember(self, keys, record):
        pass

    def hold(self, record):
        self.held += 1

    def release(self, record):
        self.held -= 1

    def save_uses(self, records):
        pass


class Exporter:
    async def export(self, stack, document, names, *, parent="", epoch=None, clamp=None):
        made = {"stack": stack, "document": document, "names": names, "clamp": clamp, "parent": parent}
        return SimpleNamespace(id="sha256:image", **made)


class Bench:
    def __init__(self):
        self.images = Images()
        self.worker = Worker()
        self.memory = Memory()
        self.said: list[str] = []
        self.doubles: tuple[Any, Any] = (self.images, Exporter())
        self.seen = SeenSteps()

    async def build(self, tree: Any, **options: Any) -> Any:
        worker: Any = self.worker
        memory: Any = self.memory
        builder = ClassicBuilder(Solver(worker, memory), tree, *self.doubles, tree, Dockerfiles(Here()), self.seen)
        request = ClassicRequest(options=Options(**options.pop("options", {})), names=NAMES, **options)
        return await builder.build(
            request, "diff:context", lambda host: None, lambda told: self.said.append(told.stream)
        )


@pytest.fixture
def bench():
    return Bench()


async def test_a_dockerfile_becomes_an_image(bench):
    image = await bench.build(Tree(Dockerfile="FROM busybox\nCOPY a b\nRUN make\nCMD run"))
    assert bench.worker.ran.count(Exec) == bench.worker.ran.count(Files) == 1
    assert image.stack == "docker-image://docker.io/library/busybox:latest + +"
    assert image.document.config.cmd == ["/bin/sh", "-c", "run"]
    assert image.names == NAMES
    assert bench.said[:2] == ["Step 1/4 : FROM busybox", "\n"]
    assert "$ make\n" in bench.said
    assert bench.memory.held == 0


@pytest.mark.parametrize(
    ("dockerfile", "parent"),
    [
        ("FROM one\nRUN make", "id of one"),
        ("FROM one\nLABEL a=b", "id of one"),
        ("FROM one AS a\nFROM two\nCOPY --from=a / /", "id of two"),
        ("FROM one AS a\nRUN make\nFROM a\nRUN make", "id of one"),
        ("FROM one", ""),
        ("FROM scratch\nLABEL a=b", ""),
    ],
)
async def test_an_image_is_the_child_of_the_one_that_it_was_made_from(bench, dockerfile, parent):
    steps = [HistoryEntry(created_by="ADD", created="2026-01-01T00:00:00Z")]
    bench.images.bases = {"one": structs.replace(BASE, history=steps), "two": structs.replace(BASE, history=steps * 2)}
    assert (await bench.build(Tree(Dockerfile=dockerfile))).parent == parent


async def test_a_quiet_build_says_nothing(bench):
    await bench.build(Tree(Dockerfile="FROM busybox\nRUN make"), quiet=True)
    assert bench.said == []


async def test_an_image_of_nothing(bench):
    image = await bench.build(Tree(Dockerfile="FROM scratch\nLABEL a=b"))
    assert (image.stack, image.document.config.labels) == ("", {"a": "b"})
    assert bench.worker.ran == []


@pytest.mark.parametrize("name", ["docker/File", "./docker/File", "/docker/File"])
async def test_another_file(bench, name):
    await bench.build(Tree(**{"docker/File": "FROM busybox"}), dockerfile=name, pull=True)
    assert bench.images.asked == [("busybox", True)]


async def test_the_old_name_in_small_letters(bench):
    await bench.build(Tree(dockerfile="FROM busybox"))
    assert bench.images.asked == [("busybox", False)]


async def test_what_is_ignored_and_was_sent_for_us_is_left_out(bench):
    tree = Tree(Dockerfile="FROM busybox\nCOPY . .", __dockerignore="Dockerfile\n.dockerignore\n")
    await bench.build(tree)
    assert tree.removed == ["/.dockerignore", "/Dockerfile"]
    assert bench.memory.forgotten == ["diff:without"]


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({}, "Cannot locate specified Dockerfile: Dockerfile"),
        ({"Dockerfile": ""}, "cannot be empty"),
        ({"Dockerfile": " \n"}, "failed to parse Dockerfile: file with no instructions"),
        ({"Dockerfile": "FROM scratch"}, "No image was generated. Is your Dockerfile empty?"),
        ({"Dockerfile": "FROM busybox\nRUM make"}, "line 2: unknown instruction: RUM"),
        ({"Dockerfile": "FROM busybox", "__dockerignore": "a\n!\n["}, ".dockerignore"),
    ],
)
async def test_what_is_wrong_is_told(bench, files, complaint):
    with pytest.raises(InvalidParameter, match=complaint.replace("(", r"\(")):
        await bench.build(Tree(**files))


@pytest.mark.parametrize(
    ("flag", "name"), [("--network=host", "network.host"), ("--security=insecure", "security.insecure")]
)
async def test_a_dockerfile_gets_no_rights_that_its_user_did_not_ask_for(bench, flag, name):
    tree = Tree(Dockerfile=f"FROM busybox\nRUN {flag} x")
    with pytest.raises(Forbidden, match=f"^{name} is not allowed$"):
        await bench.build(tree)
    assert bench.worker.ran == []
    if name == "network.host":
        await bench.build(tree, options={"network": "host"})


async def test_an_image_without_files_is_the_same_each_time(bench):
    for lines in ("EXPOSE 1 2", "EXPOSE 2 1"):
        image = await bench.build(Tree(Dockerfile=f"FROM scratch\n{lines}"))
        bench.said.append(image.document.created)
    created = bench.said[-1]
    assert created
    assert bench.said.count(created) == 2
    assert bench.said.count(" ---> Using cache\n") == 1


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (StepFailed(["/bin/sh", "-c", "x"], 7), "The command '/bin/sh -c x' returned a non-zero code: 7"),
        (NotFound('failed to compute cache key: "/a": not found'), '"/a": not found'),
    ],
)
async def test_what_fails_is_told_in_dockers_words(bench, failure, told):
    bench.worker.fails = failure
    with pytest.raises(HuskError, match=told):
        await bench.build(Tree(Dockerfile="FROM busybox\nRUN x"), quiet=True)
    assert "Step 2/2 : RUN x" in bench.said, "a quiet build that fails says what it has kept back"


@pytest.mark.parametrize(
    ("line", "reason", "told"),
    [
        ("COPY a /", '"/a": not found', "context or excluded by .dockerignore: stat a: file does not exist"),
        ("COPY --from=busybox a /", '"/a": not found', "COPY failed: stat a: file does not exist"),
        ("ADD a* /", "/a* not found", "ADD failed: no source files were specified"),
        ("VOLUME /f", "mkdir /f: not a directory", "cannot mount volume over existing file, file exists /f"),
    ],
)
async def test_files_that_are_not_there(bench, line, reason, told):
    bench.worker.fails = NotFound(f"failed to calculate checksum of ref diff:1: {reason}")
    with pytest.raises(InvalidParameter, match=re.escape(told)):
        await bench.build(Tree(Dockerfile=f"FROM busybox\n{line}"))


async def test_arguments_that_nobody_wants_are_told(bench):
    names = ["A", "B", "C", "https_PROXY", "SOURCE_DATE_EPOCH", "BUILDKIT_X"]
    text = "ARG B\nFROM busybox\nARG C\n"
    await bench.build(Tree(Dockerfile=text), arguments=[*names, "AA"])
    assert bench.said[-1] == "[Warning] One or more build-args [A AA] were not consumed\n"


async def test_times_are_those_of_source_date_epoch(bench):
    arguments = {"build_args": {"SOURCE_DATE_EPOCH": "0"}}
    image = await bench.build(Tree(Dockerfile="FROM scratch\nLABEL a=b"), options=arguments)
    assert image.document.history[-1].created == "1970-01-01T00:00:00Z"
    image = await bench.build(Tree(Dockerfile="FROM busybox\nRUN x"), options=arguments)
    assert image.clamp == 0


async def test_an_image_that_is_here_serves_as_a_cache(bench):
    steps = [HistoryEntry(created_by="base"), HistoryEntry(created_by="/bin/sh -c make")]
    bench.images.base = structs.replace(BASE, history=steps[:1])
    bench.images.here["old"] = structs.replace(BASE, rootfs=RootFS(diff_ids=["sha256:d", "sha256:e"]), history=steps)
    bench.worker.source_stack = stacks.of_layers(chain_ids(["sha256:d"]))
    image = await bench.build(Tree(Dockerfile="FROM busybox\nRUN make"), cache_from=["old", "absent"])
    assert image.stack == stacks.of_layers(chain_ids(["sha256:d", "sha256:e"]))
    assert bench.worker.ran.count(Exec) == 0
    assert " ---> Using cache\n" in bench.said


async def test_what_was_added_can_become_one_layer(bench):
    steps = [HistoryEntry(created_by="base"), HistoryEntry(created_by="CMD", empty_layer=True)]
    bench.images.base = structs.replace(BASE, history=steps)
    bench.worker.source_stack = "layer:base"
    tree = Tree(Dockerfile="FROM base\nRUN one\nENV a=b\nRUN two")
    image = await bench.build(tree, squash=True)
    assert tree.differences == [("layer:base", "layer:base + +")]
    assert image.stack == "layer:base diff:all" and bench.memory.forgotten == ["diff:all"]
    told = [(step.created_by, step.empty_layer) for step in image.document.history]
    assert told == [
        ("base", False), ("CMD", True),
        ("RUN /bin/sh -c one # buildkit", True), ("ENV a=b", True), ("RUN /bin/sh -c two # buildkit", True),
        ("", False),
    ]  # fmt: skip
    # Nobody else knows when the one layer was made, which is not when its base was.
    assert [bool(step.created) for step in image.document.history] == [False] * 5 + [True]
    image = await bench.build(tree, squash=True, options={"build_args": {"SOURCE_DATE_EPOCH": "0"}})
    assert image.document.history[-1].created == "1970-01-01T00:00:00Z"


async def test_one_layer_is_not_squashed(bench):
    bench.worker.source_stack = "layer:base"
    tree = Tree(Dockerfile="FROM base\nRUN one")
    assert (await bench.build(tree, squash=True)).stack == "layer:base +"
    assert tree.differences == []
