"""GET /metrics on a port of its own."""

import asyncio
from pathlib import Path

import aiohttp
import pytest

from husk.errors import SystemFault
from husk.observe.metrics.families import Families
from husk.observe.metrics.server import LIMITS, serve
from tests.unit.observe.metrics.played_engine import played


async def test_only_metrics_are_served_and_only_read(tmp_path: Path) -> None:
    engine = played(tmp_path, [])
    async with serve(engine, Families(), "127.0.0.1:0", 10) as address, aiohttp.ClientSession() as client:
        answer = await client.get(f"http://{address}/metrics")
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert "husk_metrics_scrapes_total 1.0" in await answer.text()
        assert "husk_metrics_scrapes_total 2.0" in await (await client.get(f"http://{address}/metrics")).text()
        assert (await client.head(f"http://{address}/metrics")).status == 200
        assert (await client.get(f"http://{address}/")).status == 404
        refused = await client.post(f"http://{address}/metrics", data=b"x")
        assert (refused.status, refused.headers["Allow"]) == (405, "GET, HEAD")
        assert len(engine.watch.watchers) == 1


async def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    async with serve(played(tmp_path, []), Families(), "127.0.0.1:0", 10) as address:
        with pytest.raises(SystemFault, match="cannot listen on"):
            async with serve(played(tmp_path, []), Families(), address, 10):
                pass


async def test_who_asks_nothing_shuts_nobody_out(tmp_path: Path) -> None:
    async with serve(played(tmp_path, []), Families(), "127.0.0.1:0", 10) as address:
        host, _, port = address.rpartition(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(LIMITS.peer_connections + 5)]
        async with aiohttp.ClientSession() as client:
            assert (await client.get(f"http://{address}/metrics")).status == 200
        # The oldest are hung up on.
        assert await silent[0][0].read() == b""
        for _, writer in silent:
            writer.close()
