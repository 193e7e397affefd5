"""The description of Husk's own operations over HTTP."""

from aiohttp import ClientSession

from husk.api.views.openapi import document
from tests.unit.api.fake_system import FakeSystem


async def test_it_is_served_and_kept(client: ClientSession) -> None:
    for path in ("/openapi.json", "/v1.51/openapi.json", "/openapi.json"):
        async with client.get(path) as response:
            assert (response.status, response.content_type) == (200, "application/json")
            assert await response.json() == document(FakeSystem.version)


async def test_there_is_nothing_to_change_in_it(client: ClientSession) -> None:
    async with client.post("/openapi.json") as response:
        assert response.status == 404
