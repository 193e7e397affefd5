"""A stack as a source and back."""

from typing import Any

import pytest

from husk.builder.graph import cache_keys, llb_read, llb_write
from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Operation, Source
from husk.builder.sources import given
from husk.errors import Forbidden

WATCHER: Any = None


async def test_a_stack_comes_out_as_it_went_in():
    source = given.source_of("layer:sha256:a diff:b")
    assert given.stack_of(source) == "layer:sha256:a diff:b"
    fetched = await given.GivenStacks().fetch(source, None, WATCHER)
    assert (fetched.stack, fetched.made) == ("layer:sha256:a diff:b", ["diff:b"])


@pytest.mark.parametrize("attributes", [{}, {"stack.proof": "0" * 64}, {"stack.proof": "\u00e9"}])
async def test_what_a_client_names_by_itself_is_not_given(attributes):
    forged = Source("stack://layer:sha256:a diff:b", attributes)
    for ask in (given.GivenStacks().key, given.GivenStacks().fetch):
        with pytest.raises(Forbidden, match="was not given"):
            await ask(forged, None, WATCHER)
    other = Source("stack://layer:sha256:a", given.source_of("layer:sha256:a diff:b").attributes)
    with pytest.raises(Forbidden):
        given.stack_of(other)


async def test_what_was_given_may_go_out_to_a_frontend_and_come_back():
    graph = Graph()
    edge = graph.add(Operation(given.source_of("diff:b")), name="given")
    back = llb_read.definition(llb_write.definition(graph, edge))
    body = next(iter(back.graph)).operation.body
    assert isinstance(body, Source)
    assert given.stack_of(body) == "diff:b"


def test_the_proof_is_no_part_of_what_was_given():
    """It is another one after a start of the daemon, and the cache is the same."""
    plain = Operation(Source("stack://diff:b"))
    assert cache_keys.by_definition(Operation(given.source_of("diff:b")), []) == cache_keys.by_definition(plain, [])
