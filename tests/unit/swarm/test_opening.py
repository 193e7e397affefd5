"""The swarm as it is put together, and what that loads."""

import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import pytest

from husk.config import Config
from husk.storage.state.store import Change, StateStore
from husk.swarm.opening import open_swarm
from tests.unit.swarm.state.test_parts import around


@pytest.mark.parametrize("damage", ["bytes", "directory"])
async def test_a_worker_with_a_damaged_certificate_starts_and_says_so(
    tmp_path: Path, state: StateStore, damage: str
) -> None:
    await state.commit(Change("membership", "self", b'{"node_id":"n","role":"worker","managers":["192.0.2.1:2377"]}'))
    kept = tmp_path / "swarm.node"
    kept.mkdir()
    (kept / "roots.crt").write_bytes(b"damaged")
    (kept / "node.key").write_bytes(b"damaged")
    if damage == "bytes":
        (kept / "node.crt").write_bytes(b"\xff damaged")
    else:
        (kept / "node.crt").mkdir()
    config = Config(data_root=tmp_path, exec_root=tmp_path)
    async with AsyncExitStack() as stack:
        containers = Mock(listing=Mock(return_value=[]))
        networks = Mock(subnets=AsyncMock(return_value=()))
        services = await open_swarm(stack, around(config, state, containers=containers, networks=networks))
        standing = services.node_role.standing()
        assert standing is not None and standing.managers == (("", "192.0.2.1:2377"),)
        assert "this node's certificate" in standing.trouble


def test_a_swarm_of_one_host_loads_nothing_for_several() -> None:
    late = ("husk.swarm.state.etcd.store", "husk.swarm.port.server", "husk.rpc", "hpack", "cryptography")
    code = f"import sys, husk.swarm.opening; print([name for name in {late!r} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert loaded.stdout.strip() == "[]"
