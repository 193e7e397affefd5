"""Results that are made when somebody needs them."""

from typing import Any

import pytest

from husk.builder.graph.graph import Graph
from husk.builder.solver.refs import Ref
from husk.builder.solver.solver import Solver
from tests.unit.builder.solver.solving import Memory, Watch, Worker, chain


class Bench:
    def __init__(self) -> None:
        self.worker: Any = Worker()
        self.memory: Any = Memory()
        self.solver = Solver(self.worker, self.memory)

    def ref(self, graph: Graph, edge: Any) -> Ref:
        return Ref(self.solver, graph, edge, Watch())


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_it_is_made_once_and_held_until_it_is_closed(bench):
    ref = bench.ref(*chain("make"))
    assert bench.worker.ran == []
    assert await ref.stack() == await ref.stack() == "make(image())"
    assert bench.worker.ran == ["image", "make"]
    assert bench.memory.held
    await ref.close()
    assert bench.memory.held == []


async def test_nothing_is_nothing(bench):
    assert await bench.ref(Graph(), None).stack() == ""


async def test_what_failed_is_told_to_all_who_ask_and_closes(bench):
    bench.worker.fail.add("make")
    ref = bench.ref(*chain("make"))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="exit code: 1"):
            await ref.stack()
    await ref.close()


async def test_one_that_nobody_asked_for_closes(bench):
    await bench.ref(*chain("make")).close()
    assert bench.worker.ran == []
