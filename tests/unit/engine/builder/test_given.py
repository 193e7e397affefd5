"""A stack as a source and back."""

from typing import Any

from husk.engine.builder import given

WATCHER: Any = None


async def test_a_stack_comes_out_as_it_went_in():
    source = given.source_of("layer:sha256:a diff:b")
    assert given.stack_of(source) == "layer:sha256:a diff:b"
    fetched = await given.GivenStacks().fetch(source, None, WATCHER)
    assert (fetched.stack, fetched.made) == ("layer:sha256:a diff:b", ["diff:b"])
