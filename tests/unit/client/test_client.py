import base64
import json

import pytest

from husk.client.client import Client, connect, connected
from husk.errors import Unauthorized, Unavailable
from tests.support.fake_engine import failed


async def test_what_the_engine_says_of_itself(client, engine):
    engine.answers("GET", "/info", {"Name": "here"})
    engine.answers("GET", "/version", {"Version": "1"})
    engine.answers("GET", "/system/df", {"LayersSize": 3})
    await client.ping()
    assert (await client.info(), await client.version(), await client.df()) == (
        {"Name": "here"},
        {"Version": "1"},
        {"LayersSize": 3},
    )


async def test_only_some_of_what_takes_room(client, engine):
    engine.answers("GET", "/system/df", {})
    await client.df("image", "volume")
    assert engine.last("GET", "/system/df").all == {"type": ["image", "volume"]}


async def test_a_login_is_remembered(client, engine):
    engine.answers("POST", "/auth", {"Status": "Login Succeeded"}, {"IdentityToken": "t"})
    engine.answers("POST", "/images/create", b"")
    engine.answers("GET", "/images/host:5000/a/json", {"Id": "sha256:1"})
    await client.login("me", "secret", registry="host:5000")
    me = {"username": "me", "password": "secret", "serveraddress": "host:5000"}
    assert engine.last("POST", "/auth").document == me
    await client.login("me", "secret", registry="https://host:5000")
    await client.images.pull("host:5000/a")
    told = engine.last("POST", "/images/create").headers["x-registry-auth"]
    assert json.loads(base64.urlsafe_b64decode(told)) == {"identitytoken": "t", "serveraddress": "host:5000"}


async def test_a_login_that_is_not_believed(client, engine):
    engine.answers("POST", "/auth", failed(401, "wrong password"))
    with pytest.raises(Unauthorized, match="wrong password"):
        await client.login(registry="host:5000", identity_token="t")
    assert engine.last("POST", "/auth").document == {"identitytoken": "t", "serveraddress": "host:5000"}


async def test_a_client_for_a_block(engine):
    async with connected(Client(engine.dial)) as client:
        await client.ping()


async def test_nobody_answers(tmp_path):
    with pytest.raises(Unavailable, match="cannot reach an engine"):
        async with connect(f"unix://{tmp_path}/s"):
            pass
