"""Findings of generators in results, with doubles of the files that they write."""

from types import SimpleNamespace
from typing import Any

import pytest

from husk.builder.attest.sbom import PREDICATE, Scanner, definition
from husk.builder.attest.wanted import Sbom
from husk.builder.dockerfile.options import BaseImage
from husk.builder.graph.graph import Definition
from husk.builder.graph.operations import Exec
from husk.builder.jobs.results import Predicate
from husk.builder.sources import given
from husk.builder.store.file_actions import NONE
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.image import ImageConfig, RootFS
from husk.errors import InvalidParameter, NotFound
from tests.unit.builder.jobs.test_jobs import Bench
from tests.unit.builder.solver.solving import chain

CONFIG = ContainerConfig(entrypoint=["/scan"], cmd=["-v"], env=["A=b"])


def image(config: ContainerConfig = CONFIG) -> BaseImage:
    return BaseImage("docker.io/team/scan:1", ImageConfig(config=config, rootfs=RootFS()))


WANTED = Sbom(generator="docker.io/team/scan:1", parameters={"DEPTH": "2"})


class Around:
    """The files that a generator has left, and the images that there are."""

    def __init__(self, **files: bytes) -> None:
        self.files = {name.replace("__", "."): data for name, data in files.items()}

    async def look(self, stack: str, path: str, *, inside: bool = False) -> Any:
        return [SimpleNamespace(name=name) for name in self.files]

    async def read(self, stack: str, path: str, most: int) -> bytes | None:
        return self.files[path.lstrip("/")][:most] or None

    async def look_up(self, name: str, platform: Any, pull: bool, watcher: Any) -> BaseImage:
        if "missing" in name:
            raise NotFound("no such image")
        return image()


async def scan(around: Any, wanted: Sbom = WANTED) -> list[Predicate]:
    bench = Bench()
    job = await bench.jobs.begin("one", None)
    try:
        ref = job.definition(Definition(*chain("make")))
        return await Scanner(around, around).scan(job, "linux/amd64", ref, wanted)
    finally:
        await bench.jobs.end(job)


def said(text: str) -> bytes:
    return b'{"predicateType": "%s", "predicate": {"name": "%s"}}' % (PREDICATE.encode(), text.encode())


async def test_statements_become_predicates_the_one_of_the_result_first():
    found = await scan(Around(a__json=said("a"), sbom__json=said("s")))
    assert [(one.type, one.body) for one in found] == [(PREDICATE, b'{"name": "s"}'), (PREDICATE, b'{"name": "a"}')]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "cannot decode in-toto statement x.json of docker.io/team/scan:1"),
        (b"[]", "cannot decode in-toto statement"),
        (b'{"predicateType": "other", "predicate": {}}', "bundle entry other does not match"),
        (b"", "which is too large or no file"),
    ],
)
async def test_what_is_no_statement(data, message):
    with pytest.raises(InvalidParameter, match=message):
        await scan(Around(x__json=data))


async def test_too_many_files():
    with pytest.raises(InvalidParameter, match="more than 64 files"):
        await scan(Around(**{f"x{number}": b"{}" for number in range(65)}))


async def test_a_generator_that_is_not_to_be_had_is_named():
    with pytest.raises(NotFound, match=r"the SBOM generator docker\.io/team/missing:1 cannot be had: no such image"):
        await scan(Around(), Sbom(generator="docker.io/team/missing:1"))


def test_the_step_is_beside_what_it_looks_at():
    made = definition("linux/amd64", "diff:a", image(), WANTED)
    assert made.edge is not None
    vertex = made.graph[made.edge.digest]
    assert vertex.name == "[linux/amd64] generating sbom using docker.io/team/scan:1"
    assert made.graph[vertex.operation.inputs[1].digest].operation.body == given.source_of("diff:a")
    body = vertex.operation.body
    assert isinstance(body, Exec)
    assert body.process.args == ["/scan", "-v"]
    assert body.process.env == [
        "A=b",
        "BUILDKIT_SCAN_DESTINATION=/run/out/",
        "BUILDKIT_SCAN_SOURCE=/run/src/core/sbom",
        "BUILDKIT_SCAN_DEPTH=2",
    ]
    _, scanned, out, _ = body.mounts
    assert (scanned.target, scanned.input, scanned.read_only) == ("/run/src/core/sbom", 1, True)
    assert (out.target, out.output) == ("/run/out/", 0)


def test_stages_and_the_context_lie_beside_it():
    made = definition("linux/amd64", "diff:a", image(), WANTED, {"one": "diff:b", "context": "", "two": "diff:c"})
    assert made.edge is not None
    operation = made.graph[made.edge.digest].operation
    assert isinstance(operation.body, Exec)
    assert "BUILDKIT_SCAN_SOURCE_EXTRAS=/run/src/extras" in operation.body.process.env
    extras = [(one.target, one.input) for one in operation.body.mounts if "extras" in one.target]
    assert extras == [
        ("/run/src/extras/sbom-one", 2),
        ("/run/src/extras/sbom-context", NONE),
        ("/run/src/extras/sbom-two", 3),
    ]
    assert made.graph[operation.inputs[3].digest].operation.body == given.source_of("diff:c")


def test_nothing_to_look_at_is_an_empty_directory():
    made = definition("", "", image(), WANTED)
    assert made.edge is not None
    operation = made.graph[made.edge.digest].operation
    assert isinstance(operation.body, Exec)
    assert (len(operation.inputs), operation.body.mounts[1].input) == (1, NONE)


def test_a_generator_needs_a_command():
    with pytest.raises(InvalidParameter, match="does not have cmd"):
        definition("", "diff:a", image(ContainerConfig()), WANTED)
