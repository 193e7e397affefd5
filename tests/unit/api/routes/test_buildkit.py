"""The doors of BuildKit's protocol are for connections that go on in HTTP/2; who asks for none hears that."""

import pytest
from aiohttp import ClientSession


@pytest.mark.parametrize("path", ["/session", "/grpc"])
@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({}, "no upgrade proto in request"),
        ({"Connection": "Upgrade"}, "no upgrade proto in request"),
        ({"Connection": "Upgrade", "Upgrade": "foo"}, "protocol foo not supported"),
        ({"Upgrade": "h2c", "Content-Length": "1"}, "a request to upgrade to h2c has no body"),
    ],
)
async def test_a_connection_that_stays_http_1_is_refused(
    client: ClientSession, path: str, headers: dict[str, str], message: str
) -> None:
    body = b"x" if "Content-Length" in headers else None
    response = await client.post(path, headers=headers, data=body)
    assert (response.status, (await response.json())["message"]) == (400, message)
