"""Operations, and the parts that carry them out."""

from typing import Any

import pytest
from msgspec import structs

from husk.builder.graph.graph import Definition, Graph
from husk.builder.graph.operations import (
    CacheMount,
    Diff,
    Exec,
    ExecMount,
    Files,
    Merge,
    NestedBuild,
    Operation,
    ProcessSpec,
    Source,
)
from husk.builder.solver.execution import Execution, described, merged
from husk.builder.sources.given import GivenStacks, source_of
from husk.builder.store.file_actions import NONE, Copy, FileAction
from husk.engine.images.make import MOST_LAYERS
from husk.errors import InvalidParameter, NotImplementedYet


class Trees:
    async def apply(self, actions, inputs, layered=False, ahead=None):
        self.packed = ahead
        return [f"{inputs[0]} diff:copied"]

    def ahead(self, action, below):
        raise AssertionError("nothing waits")

    async def digest(self, stack, selections, form=""):
        return f"digest of {stack}"

    async def difference(self, lower, upper):
        return "diff:compared"


class Steps:
    def begin_anew(self, caches):
        self.anew = caches

    async def run(self, body, inputs, watcher, platform, layered=False, followed=True):
        self.layered, self.followed = layered, followed
        return [f"{inputs[0]} diff:ran"]


class FilesOfStacks:
    async def read(self, stack, path, most):
        return {"buildkit.llb.definition": b"definition", "nothing": b"nothing"}.get(path)


async def nothing(data):
    raise AssertionError("no build within a build")


@pytest.fixture
def steps():
    return Steps()


@pytest.fixture
def execution(steps):
    return Execution({"stack": GivenStacks()}, Trees(), steps, FilesOfStacks(), nothing)


def vertex(body, name="a step"):
    graph = Graph()
    edge = graph.add(Operation(body), name=name)
    return graph[edge.digest]


RUN = Exec(process=ProcessSpec(args=["make", "all"]), mounts=[ExecMount(target="/", input=0, output=0)])
COPY = Files([FileAction(action=Copy(source="/a", destination="/b"), input=0, second_input=1, output=0)])


@pytest.mark.parametrize(
    ("body", "inputs", "outputs", "made"),
    [
        (RUN, ["layer:x"], ["layer:x diff:ran"], ["diff:ran"]),
        (COPY, ["layer:x", "diff:c"], ["layer:x diff:copied"], ["diff:copied"]),
        (Merge(), ["layer:x", "diff:a"], ["layer:x diff:a"], []),
        (Diff(0, 1), ["layer:x", "layer:x diff:a"], ["diff:a"], []),
        (Diff(0, 1), ["layer:x", "diff:a"], ["diff:compared"], ["diff:compared"]),
        (Diff(NONE, 0), ["diff:a"], ["diff:a"], []),
    ],
)
async def test_operations(execution, body, inputs, outputs, made):
    record = await execution.run(vertex(body), inputs, None)
    assert (record.outputs, record.made) == (outputs, made)


async def test_a_step_hears_that_it_makes_a_layer(execution, steps):
    for layered in (True, False):
        await execution.run(structs.replace(vertex(RUN), layered=layered), ["layer:x"], None)
        assert steps.layered is layered
        assert steps.followed
    await execution.run(structs.replace(vertex(RUN), followed=False), ["layer:x"], None)
    assert not steps.followed


def test_caches_of_steps_that_are_made_without_a_cache_begin_anew(execution, steps):
    def step(*mounts, ignore_cache=True):
        return structs.replace(vertex(structs.replace(RUN, mounts=[*RUN.mounts, *mounts])), ignore_cache=ignore_cache)

    plain, filled = CacheMount("plain"), CacheMount("filled")
    vertices = [
        step(ExecMount(target="/c", kind=plain), ExecMount(target="/d", kind=filled, input=1)),
        step(ExecMount(target="/d", kind=filled)),
        step(ExecMount(target="/e", kind=CacheMount("cached")), ignore_cache=False),
    ]
    execution.begin_anew(vertices)
    assert steps.anew == {"plain": False, "filled": True}


async def test_each_record_has_an_id_of_its_own(execution):
    ids = {(await execution.run(vertex(Merge()), ["diff:a"], None)).id for _ in range(3)}
    assert len(ids) == 3


async def test_a_source_is_known_by_its_scheme(execution):
    given = source_of("diff:context")
    assert await execution.source_key(Operation(given), None) == "diff:context"
    record = await execution.run(vertex(given), [], None)
    assert (record.outputs, record.made, record.type) == (["diff:context"], ["diff:context"], "source.local")


class Followed(GivenStacks):
    async def fetch_ahead(self, source, watcher, ahead):
        self.ahead = ahead
        return await self.fetch(source, None, watcher)


async def test_what_is_packed_ahead_is_told_to_the_source_and_to_the_copy():
    source, trees = Followed(), Trees()
    ahead: Any = object()
    nobody: Any = None
    execution = Execution({"stack": source}, trees, Steps(), FilesOfStacks(), nothing)
    await execution.run(structs.replace(vertex(source_of("diff:c")), ahead=ahead), [], nobody)
    await execution.run(structs.replace(vertex(COPY), ahead=ahead), ["layer:x", "diff:c"], nobody)
    assert source.ahead is trees.packed is ahead
    execution = Execution({"stack": GivenStacks()}, trees, Steps(), FilesOfStacks(), nothing)  # one that cannot do it
    await execution.run(structs.replace(vertex(source_of("diff:c")), ahead=ahead), [], nobody)


async def test_what_is_not_built_yet_says_so(execution):
    with pytest.raises(NotImplementedYet, match="kind gopher"):
        await execution.source_key(Operation(Source("gopher://x")), None)
    with pytest.raises(InvalidParameter, match="solved, not run"):
        await execution.run(vertex(NestedBuild(0)), ["diff:a"], None)


async def test_a_build_within_a_build_is_given_by_a_file():
    graph = Graph()
    edge = graph.add(Operation(Source("x://y")))

    async def read(data):
        return Definition(graph, edge if data == b"definition" else None)

    execution = Execution({}, Trees(), Steps(), FilesOfStacks(), read)
    inputs = {"buildkit.llb.definition": 0}
    assert await execution.definition(NestedBuild(NONE, inputs), ["diff:a"]) == (graph, edge)
    for wrong, message in (
        (NestedBuild(0, inputs), "no other builder"),
        (NestedBuild(NONE), "no llb definition input"),
        (NestedBuild(NONE, {"buildkit.llb.definition": 1}), "no llb definition input"),
        (NestedBuild(NONE, inputs, {"llbbuild.filename": "other"}), "is not there"),
        (NestedBuild(NONE, inputs, {"llbbuild.filename": "nothing"}), "makes nothing"),
    ):
        with pytest.raises(InvalidParameter, match=message):
            await execution.definition(wrong, ["diff:a"])


async def test_contents_are_asked_of_the_files(execution):
    assert await execution.content_digest("diff:a", []) == "digest of diff:a"


@pytest.mark.parametrize(
    ("stacks", "result"),
    [
        (["layer:x diff:a", "diff:b"], "layer:x diff:a diff:b"),
        (["diff:a diff:b", "diff:a diff:c"], "diff:b diff:a diff:c"),
        (["", "diff:a", ""], "diff:a"),
        ([], ""),
    ],
)
def test_what_comes_twice_counts_where_it_is_uppermost(stacks, result):
    assert merged(stacks) == result


def test_what_a_list_of_the_cache_shows():
    assert described(vertex(RUN)) == "mount / from exec make all"
    assert described(vertex(COPY, "[2/2] COPY a b")) == "[2/2] COPY a b"


async def test_what_could_not_be_mounted_is_refused_before_it_is_made(execution):
    deep = " ".join(f"diff:{number}" for number in range(MOST_LAYERS))
    copy = vertex(Files([FileAction(action=Copy(source="/a", destination="/b"), input=0, second_input=0)]))
    assert (await execution.run(copy, [deep], None)).outputs == [f"{deep} diff:copied"]
    for body in (copy, vertex(Exec(process=ProcessSpec(args=["x"]), mounts=[ExecMount(target="/", input=0)]))):
        with pytest.raises(InvalidParameter, match="max depth exceeded"):
            await execution.run(body, [f"{deep} diff:copied"], None)
    with pytest.raises(InvalidParameter, match="max depth exceeded"):
        await execution.run(vertex(Merge()), [deep, "diff:more"], None)
    assert (await execution.run(vertex(Merge()), [deep, "diff:1"], None)).outputs[0].endswith(" diff:1")
