"""Contexts that come with requests."""

import pytest

from husk.builder.sources.request_bodies import RequestBodies
from husk.errors import InvalidParameter


async def chunks(*data):
    for one in data:
        yield one


async def test_a_body_is_there_for_as_long_as_its_request_and_is_read_once():
    bodies = RequestBodies()
    with bodies.offer(chunks(b"a", b"b")) as url:
        body = bodies.get(url)
        assert body
        assert [one async for one in body.chunks()] == [b"a", b"b"]
        with pytest.raises(InvalidParameter, match="cannot be read again"):
            body.chunks()
    assert bodies.get(url) is None


async def test_two_bodies_have_different_addresses():
    bodies = RequestBodies()
    with bodies.offer(chunks()) as one, bodies.offer(chunks()) as other:
        assert one != other
