"""A stock client's session: its directory, patterns and secrets, as `docker buildx` gives them."""

import pytest

from husk.builder.solver.sessions import LocalDirectory
from husk.builder.store.sync.exchange import exchange
from husk.builder.store.sync_table import read_table
from husk.builder.store.workers.jobs import ReceiveJob
from husk.errors import NotFound
from husk.storage.workers.nursery import Nursery
from tests.support.build_client import StockClient
from tests.support.building import needs_buildx

pytestmark = needs_buildx


async def test_files_and_secrets_of_a_stock_client(tmp_path):
    context, here, table = tmp_path / "context", tmp_path / "here", tmp_path / "table"
    (context / "sub").mkdir(parents=True)
    here.mkdir()
    (context / "Dockerfile").write_text("FROM scratch\nCOPY . /\n")
    (context / "sub" / "large").write_bytes(b"0123456789" * 50_000)
    (context / "sub" / "ü").write_bytes(b"name")
    (context / "link").symlink_to("sub/large")
    (context / "left out").write_bytes(b"no")
    (tmp_path / "secret").write_bytes(b"hunter2")
    nursery = Nursery()

    async def work(session):
        assert await session.secret("token") == b"hunter2"
        with pytest.raises(NotFound):
            await session.secret("other")
        assert not await session.credentials("registry.example")
        wanted = LocalDirectory(name="context", exclude=["left out"])
        async with session.sync(wanted) as channel:
            await exchange(nursery, ReceiveJob(root=str(here), old="", new=str(table)), channel)
        with pytest.raises(NotFound, match="no access allowed"):
            async with session.sync(LocalDirectory(name="elsewhere")) as channel:
                await channel.receive()

    try:
        (tmp_path / "client").mkdir()
        async with StockClient(tmp_path / "client", work) as client:
            await client.build("--secret", f"id=token,src={tmp_path}/secret", context)
    finally:
        nursery.close()
    found = sorted(str(path.relative_to(here)) for path in here.rglob("*"))
    assert found == ["Dockerfile", "link", "sub", "sub/large", "sub/ü"]
    assert (here / "sub" / "large").read_bytes() == (context / "sub" / "large").read_bytes()
    with table.open("rb") as file:
        told = read_table(file)
    assert told
    assert told.paths == [b"Dockerfile", b"link", b"sub", b"sub/large", "sub/ü".encode()]
