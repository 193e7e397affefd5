import pytest

from husk.client.client import Client, connect, connected
from husk.errors import Unavailable


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


async def test_a_client_for_a_block(engine):
    async with connected(Client(engine.dial)) as client:
        await client.ping()


async def test_nobody_answers(tmp_path):
    with pytest.raises(Unavailable, match="cannot reach an engine"):
        async with connect(f"unix://{tmp_path}/s"):
            pass
