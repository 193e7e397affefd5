from typing import Any

import pytest

from husk.api.buildkit import llb_write
from husk.api.buildkit.definitions import Definitions
from husk.api.buildkit.messages import ops
from husk.errors import InvalidParameter, NotImplementedYet
from tests.support.parsing import Here
from tests.unit.engine.builder.solving import chain


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
