"""The solver, with doubles of what does the work and of what remembers it."""

import asyncio
import contextlib
import gc
import weakref

import pytest
from msgspec import structs

from husk.aio.tasks import Tasks
from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Edge, Exec, ExecMount, Merge, NestedBuild, Operation, ProcessSpec
from husk.builder.solver.interfaces import Record
from husk.builder.solver.solver import Solver
from husk.builder.solver.source_policy import SourcePolicy
from husk.builder.solver.source_rules import Action, Match, SourceDenied, SourceRule, Update
from husk.builder.store.file_actions import NONE
from husk.errors import Forbidden, InvalidParameter
from tests.unit.builder.solver.solving import Memory, Watch, Worker, chain, copy, source, step


@pytest.fixture
def worker():
    return Worker()


@pytest.fixture
def memory():
    return Memory()


@pytest.fixture
def solver(worker, memory):
    return Solver(worker, memory)


async def solve(solver, graph, edge):
    watch = Watch()
    build = await solver.solve(graph, edge, watch)
    await build.close()
    assert build.record
    return build.record, watch


async def test_inputs_first(solver, worker):
    graph, edge = chain("a", "b")
    record, watch = await solve(solver, graph, edge)
    assert worker.ran == ["image", "a", "b"]
    assert record.outputs == ["b(a(image()))"]
    assert watch.ends() == {"image": "done", "a": "done", "b": "done"}


async def test_a_second_time_nothing_runs(solver, worker, memory):
    graph, edge = chain("a", "b")
    first, _ = await solve(solver, graph, edge)
    worker.ran.clear()
    second, watch = await solve(solver, graph, edge)
    assert (second, worker.ran) == (first, [])
    assert watch.ends() == {"image": "cached", "a": "cached", "b": "cached"}
    assert memory.held == []


async def test_only_what_changed_runs_again(solver, worker):
    await solve(solver, *chain("a", "b", "c"))
    worker.ran.clear()
    _, watch = await solve(solver, *chain("a", "B", "c"))
    assert worker.ran == ["B", "c"]
    assert watch.ends()["a"] == "cached"


async def test_unused_vertices_are_not_touched(solver, worker):
    graph, edge = chain("a")
    step(graph, "unused", source(graph, "other"))
    await solve(solver, graph, edge)
    assert worker.ran == ["image", "a"]


async def test_independent_steps_run_side_by_side(solver, worker):
    graph = Graph()
    base = source(graph, "image")
    edge = graph.add(Operation(Merge(), [step(graph, f"s{number}", base) for number in range(10)]), name="merge")
    worker.gate = asyncio.Event()
    work = begin(solve(solver, graph, edge))
    await wait_until(lambda: "image" in worker.running)
    worker.gate.set()
    worker.gate = asyncio.Event()
    await wait_until(lambda: len(worker.running) == 10)
    worker.gate.set()
    await work
    assert worker.most == 10


def begin(work):
    return Tasks().spawn(work, "a build", awaited=True)


async def wait_until(condition):
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


async def test_a_source_that_changed(solver, worker):
    await solve(solver, *chain("a"))
    worker.ran.clear()
    worker.sources["image"] = "newer"
    await solve(solver, *chain("a"))
    assert worker.ran == ["image", "a"]


async def test_a_touched_file_is_a_hit_and_so_is_what_follows(solver, worker):
    def context_build():
        graph = Graph()
        copied = copy(graph, "copy", source(graph, "image"), source(graph, "local://context"))
        return graph, step(graph, "make", copied)

    first, _ = await solve(solver, *context_build())
    worker.ran.clear()
    # Another context, in which the files that are copied look the same.
    worker.sources["local://context"] = "touched"
    second, watch = await solve(solver, *context_build())
    assert worker.ran == ["local://context"]
    assert second == first
    assert watch.ends()["copy"] == "cached"
    assert ("local://context", "transfer") in watch.told


async def test_no_cache(solver, worker):
    graph, edge = chain("a")
    again = step(graph, "again", edge, ignore_cache=True)
    last = step(graph, "last", again)
    await solve(solver, graph, last)
    worker.ran.clear()
    await solve(solver, graph, last)
    assert worker.ran == ["again", "last"]
    assert worker.begun[-1] == ["image", "a", "again", "last"]


async def test_two_builds_share_a_run(solver, worker):
    worker.gate = asyncio.Event()
    builds = [begin(solve(solver, *chain("a", "b"))) for _ in range(2)]
    await wait_until(lambda: worker.running)
    worker.gate.set()
    (first, one), (second, other) = await asyncio.gather(*builds)
    assert worker.ran == ["image", "a", "b"]
    assert first == second
    assert one.ends() == other.ends() == {"image": "done", "a": "done", "b": "done"}
    assert ("a", "a runs") in one.told


async def test_a_run_goes_on_for_those_who_still_wait(solver, worker, memory):
    worker.gate = asyncio.Event()
    builds = [begin(solve(solver, *chain("a"))) for _ in range(2)]
    await wait_until(lambda: worker.running)
    await asyncio.sleep(0)
    builds[0].cancel()
    await asyncio.wait([builds[0]])
    assert worker.running == {"image"}
    worker.gate.set()
    await builds[1]
    assert worker.cancelled == []


async def test_a_cancelled_build_leaves_nothing(solver, worker, memory):
    graph, edge = chain("a")
    worker.gate = asyncio.Event()
    watch = Watch()
    build = begin(solver.solve(graph, edge, watch))
    await wait_until(lambda: worker.running)
    build.cancel()
    with pytest.raises(asyncio.CancelledError):
        await build
    assert worker.cancelled == ["image"]
    assert (worker.running, memory.held) == (set(), [])
    assert watch.ends() == {"image": "cancelled"}
    worker.gate.set()
    await solve(solver, graph, edge)


async def test_a_step_that_fails(solver, worker, memory):
    graph, edge = chain("a", "bad", "c")
    worker.fail.add("bad")
    watch = Watch()
    with pytest.raises(RuntimeError, match="exit code: 1"):
        await solver.solve(graph, edge, watch)
    assert watch.ends() == {"image": "done", "a": "done", "bad": "exit code: 1"}
    assert memory.held == []
    worker.fail.clear()
    worker.ran.clear()
    await solve(solver, graph, edge)
    assert worker.ran == ["bad", "c"]


async def test_a_failure_ends_what_runs_beside_it(solver, worker):
    graph = Graph()
    base = source(graph, "image")
    await solve(solver, graph, base)
    bad, slow = step(graph, "bad", base), step(graph, "slow", base)
    edge = graph.add(Operation(Merge(), [bad, slow]), name="merge")
    worker.fail.add("bad")
    run = worker.run

    async def wait_when_slow(vertex, inputs, watcher):
        if vertex.name == "slow":
            worker.gate = asyncio.Event()
        try:
            return await run(vertex, inputs, watcher)
        finally:
            worker.gate = None

    worker.run = wait_when_slow
    watch = Watch()
    with pytest.raises(RuntimeError):
        await solver.solve(graph, edge, watch)
    assert worker.cancelled == ["slow"]
    assert watch.ends()["slow"] == "cancelled"


async def test_long_chains(solver, worker):
    graph, edge = chain(*(f"s{number}" for number in range(2_000)))
    await solve(solver, graph, edge)
    assert len(worker.ran) == 2_001


async def test_a_long_chain_is_cancelled_and_leaves_nothing(solver, worker, memory):
    graph, edge = chain(*(f"s{number}" for number in range(2_000)))
    worker.gate = asyncio.Event()
    build = begin(solver.solve(graph, edge, Watch()))
    await wait_until(lambda: worker.running)
    build.cancel()
    with pytest.raises(asyncio.CancelledError):
        await build
    assert (worker.cancelled, worker.running, memory.held) == (["image"], set(), [])
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_records_are_held_while_the_build_is_open(solver, memory):
    graph, edge = chain("a")
    build = await solver.solve(graph, edge, Watch())
    assert len(memory.held) == 2
    await build.close()
    assert memory.held == []


def test_an_edge_of_another_output():
    assert Edge("x", 1) != Edge("x")


async def test_a_build_within_a_build():
    worker, memory, watch = Worker(), Memory(), Watch()
    graph = Graph()
    outer = graph.add(Operation(NestedBuild(NONE, {"definition": 0}), [source(graph, "given")]), name="outer")
    last = step(graph, "last", outer)
    build = await Solver(worker, memory).solve(graph, last, watch)
    assert build.record
    assert build.record.outputs == ["last(inner(inner image()))"]
    assert watch.ends()["inner"] == "done"
    assert len(memory.held) == 5, "what was made within is held, too"
    await build.close()
    assert memory.held == []
    again = await Solver(worker, memory).solve(graph, last, watch)
    assert worker.ran.count("inner") == 1
    await again.close()


async def test_what_a_build_may_is_what_builds_within_it_may():
    class Host(Worker):
        async def definition(self, body, inputs):
            graph, edge = await super().definition(body, inputs)
            run = Exec(process=ProcessSpec(args=["x"]), mounts=[ExecMount(target="/", input=0)], network="host")
            return graph, graph.add(Operation(run, [edge]), name="on the host")

    worker, memory = Host(), Memory()
    graph = Graph()
    outer = graph.add(Operation(NestedBuild(NONE, {"definition": 0}), [source(graph, "given")]), name="outer")
    with pytest.raises(Forbidden, match=r"^network\.host is not allowed$"):
        await Solver(worker, memory).solve(graph, outer, Watch())
    assert "on the host" not in worker.ran
    build = await Solver(worker, memory).solve(graph, outer, Watch(), granted=["network.host"])
    assert "on the host" in worker.ran
    assert worker.granted["on the host"] == ["network.host"], "it goes to where the step is run"
    await build.close()


async def test_the_policy_about_sources_holds_for_builds_within_a_build():
    worker, memory, watch = Worker(), Memory(), Watch()
    graph = Graph()
    outer = graph.add(Operation(NestedBuild(NONE, {"definition": 0}), [source(graph, "given")]), name="outer")
    image = next(vertex for vertex in (await worker.definition(NestedBuild(NONE, {}), []))[0]).operation.body.identifier
    denied = SourcePolicy([[SourceRule(action=Action.DENY, identifier=image, match=Match.EXACT)]])
    with pytest.raises(SourceDenied, match="denied by policy"):
        await Solver(worker, memory).solve(graph, outer, watch, policy=denied)
    assert "inner" not in worker.ran
    other = SourceRule(action=Action.CONVERT, identifier=image, match=Match.EXACT, update=Update("local://other"))
    build = await Solver(worker, memory).solve(graph, outer, watch, policy=SourcePolicy([[other]]))
    assert "inner" in worker.ran
    await build.close()


async def test_builds_within_a_build_are_not_too_many():
    memory = Memory()
    graph = Graph()
    inputs = [source(graph, "given")]
    many = [
        graph.add(Operation(NestedBuild(NONE, {}, {"": str(number)}), inputs), name=str(number)) for number in range(4)
    ]
    with pytest.raises(InvalidParameter, match="more than 3 of them"):
        await Solver(Worker(), memory, most_within=3).solve(graph, step(graph, "last", *many), Watch())
    assert memory.held == []


async def test_builds_within_builds_have_an_end():
    memory = Memory()
    graph = Graph()
    outer = graph.add(Operation(NestedBuild(NONE, {}, {"again": "x"}), [source(graph, "given")]), name="outer")
    with pytest.raises(InvalidParameter, match="more than 8"):
        await Solver(Worker(), memory).solve(graph, outer, Watch())
    assert memory.held == []


class Elsewhere:
    """Knows vertices by name; what is fetched is here from then on."""

    def __init__(self, **outputs):
        self.outputs = outputs
        self.fetched = []
        self.here = set()

    async def find(self, vertex, records, key, known, watcher):
        if vertex.name not in self.outputs:
            return None
        output = self.outputs[vertex.name]
        return Record(known.id if known else f"remote {vertex.name}", [output] if output else [], absent=not output)

    async def fetch(self, record, watcher):
        self.fetched += record.outputs
        self.here.update(record.outputs)
        return bool(record.outputs)

    async def close(self):
        pass


@pytest.fixture
def elsewhere(memory):
    cache = Elsewhere(image="", a="", b="found b")
    memory.is_whole = lambda record: (
        not record.absent and (not record.outputs[0].startswith("found") or record.outputs[0] in cache.here)
    )
    return cache


async def solve_with(solver, graph, edge, elsewhere):
    watch = Watch()
    build = await solver.solve(graph, edge, watch, elsewhere=elsewhere)
    await build.close()
    assert build.record
    return build.record, watch


async def test_what_is_found_elsewhere_is_fetched_and_nothing_below_it(solver, worker, elsewhere):
    graph, edge = chain("a", "b")
    record, watch = await solve_with(solver, graph, edge, elsewhere)
    assert (record.outputs, worker.ran) == (["found b"], [])
    assert elsewhere.fetched == ["found b"]
    assert set(watch.ends().values()) == {"cached"}
    # The next build needs nobody.
    again, _ = await solve(solver, graph, edge)
    assert again == record
    assert worker.ran == []


async def test_what_lies_on_it_is_made_from_it(solver, worker, elsewhere):
    graph, edge = chain("a", "b", "c")
    record, _ = await solve_with(solver, graph, edge, elsewhere)
    assert (record.outputs, worker.ran) == (["c(found b)"], ["c"])


async def test_what_is_only_known_is_made_when_it_is_needed_and_what_was_made_from_it_stays_good(
    solver, worker, elsewhere
):
    graph, edge = chain("a", "b")
    await solve_with(solver, graph, edge, elsewhere)
    other = step(graph, "other", *graph[edge.digest].operation.inputs)
    record, _ = await solve(solver, graph, other)
    assert record.outputs == ["other(a(image()))"]
    assert worker.ran == ["image", "a", "other"]
    worker.ran.clear()
    await solve(solver, graph, edge)
    assert worker.ran == []


async def test_what_cannot_be_fetched_is_made(solver, worker, elsewhere):
    async def fetch(record, watcher):
        return False

    elsewhere.fetch = fetch
    graph, edge = chain("a", "b")
    record, _ = await solve_with(solver, graph, edge, elsewhere)
    assert (record.outputs, worker.ran) == (["b(a(image()))"], ["image", "a", "b"])


def context_copy(below="image", path="/"):
    graph = Graph()
    return graph, copy(graph, "copy", source(graph, below), source(graph, "local://context"), path)


async def test_a_copy_that_waits_for_a_directory_is_packed_while_that_comes(solver, worker):
    build = await solver.solve(*context_copy(), Watch(), to_layers=True)
    [ahead] = worker.aheads
    assert dict(worker.packing) == {"local://context": ahead, "copy": ahead}
    assert await ahead.below() == "image()"
    assert not ahead.closed
    await build.close()
    assert ahead.closed


@pytest.mark.parametrize(("path", "to_layers"), [("/", False), ("/a", True)])
async def test_nothing_is_packed_for_other_copies(solver, worker, path, to_layers):
    build = await solver.solve(*context_copy(path=path), Watch(), to_layers=to_layers)
    await build.close()
    assert (worker.aheads, worker.packing) == ([], [])


async def test_a_build_that_fails_lets_go_of_what_was_packed(solver, worker):
    worker.fail.add("image")
    with pytest.raises(RuntimeError):
        await solver.solve(*context_copy(), Watch(), to_layers=True)
    [ahead] = worker.aheads
    assert ahead.closed
    assert await ahead.below() is None


async def test_a_copy_that_the_cache_has_lets_go_of_what_was_packed(solver, worker):
    for content in ("first", "second"):
        worker.sources["local://context"] = content
        build = await solver.solve(*context_copy(), Watch(), to_layers=True)
        # At once: the rest of the build, and what becomes of its image, may take long.
        assert worker.aheads[-1].closed == (content == "second")
        await build.close()
    assert worker.ran.count("copy") == 1
    assert [ahead.closed for ahead in worker.aheads] == [True, True]


async def test_the_last_operation_of_a_build_knows_that_none_follows():
    followed = {}

    class Noting(Worker):
        async def run(self, vertex, inputs, watcher):
            followed[vertex.name] = vertex.followed
            return await super().run(vertex, inputs, watcher)

    graph, edge = chain("a", "b")
    build = await Solver(Noting(), Memory()).solve(graph, edge, Watch())
    await build.close()
    assert followed == {"image": True, "a": True, "b": False}


async def test_what_was_made_for_a_build_that_went_meanwhile_is_let_go_of():
    """It was made, and the cache had not heard of it: nobody else could find it."""

    class Making(Worker):
        async def run(self, vertex, inputs, watcher):
            record = await super().run(vertex, inputs, watcher)
            return structs.replace(record, made=[f"diff:{vertex.name}"])

    told, hangs = asyncio.Event(), asyncio.Event()

    class Hanging(Memory):
        async def remember(self, keys, record):
            told.set()
            await hangs.wait()

    memory = Hanging()
    solver = Solver(Making(), memory)
    builds = [begin(solve(solver, *chain("a"))) for _ in range(2)]
    await told.wait()
    builds[0].cancel()
    await asyncio.wait([builds[0]])
    assert memory.unnamed == [], "the other one still has it"
    builds[1].cancel()
    await asyncio.wait([builds[1]])
    assert memory.unnamed == ["diff:image"]


async def test_what_the_cache_has_heard_of_stays(solver, memory):
    await solve(solver, *chain("a"))
    assert memory.unnamed == []


@pytest.mark.parametrize("fails", [False, True])
async def test_nothing_of_a_closed_build_waits_for_the_collector_of_garbage(solver, worker, fails):
    if fails:
        worker.fail.add("b")
    graph, edge = chain("a", "b")
    gone = weakref.ref(watch := Watch())
    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(RuntimeError):
            await (await solver.solve(graph, edge, watch)).close()
        del watch
        await asyncio.sleep(0)
        assert gone() is None
    finally:
        gc.enable()
