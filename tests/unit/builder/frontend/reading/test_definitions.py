from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from husk.builder.frontend.reading.definitions import Definitions
from husk.builder.frontend.reading.llb_answerer import Answerer
from husk.builder.graph import llb_write, ops
from husk.errors import HuskError, InvalidParameter, NotImplementedYet
from tests.support.parsing import Here
from tests.unit.builder.solver.solving import chain


async def test_a_definition_is_read_elsewhere():
    parsers: Any = Here()
    read = await Definitions(parsers).read(llb_write.definition(*chain("a")).encode())
    assert read.edge is not None and read.graph[read.edge.digest].name == "a"
    assert (await Definitions(parsers).read(b"")).edge is None
    assert parsers.open == 0


async def test_what_is_wrong_with_it():
    parsers: Any = Here()
    with pytest.raises(InvalidParameter, match="cannot be read"):
        await Definitions(parsers).read(b"\xff")
    source = ops.Op(passthrough=ops.PassthroughOp("x")).encode()
    graph, edge = chain("a")
    definition = llb_write.definition(graph, edge)
    definition.definition.insert(0, source)
    with pytest.raises(NotImplementedYet, match="passthrough"):
        await Definitions(parsers).read(definition.encode())
    assert parsers.open == 0


@pytest.mark.parametrize("cut", [0, 1, 2])
@pytest.mark.parametrize("piece", [b"", b"\xff", b"\x90", b"x" * 1000])
async def test_a_worker_that_says_what_is_no_answer(cut: int, piece: bytes) -> None:
    """It has read hostile bytes: nothing that it says is taken for more than it is."""
    good = [bytes(one) for one in Answerer().turn(llb_write.definition(*chain("a")).encode())]
    parsers: Any = Saying([*good[:cut], *([piece] if piece else [])])
    if cut == 1 and not piece:
        parsers.pieces.append(good[1])  # an operation that is not the last one
    with pytest.raises(HuskError):
        await Definitions(parsers).read(b"x")


class Saying(Here):
    def __init__(self, pieces: list[bytes]) -> None:
        super().__init__()
        self.pieces = pieces

    @asynccontextmanager
    async def begin(self, module: str) -> AsyncIterator[Any]:
        yield self

    async def ask(self, question: bytes, /) -> AsyncGenerator[bytes, None]:
        for piece in self.pieces:
            yield piece
