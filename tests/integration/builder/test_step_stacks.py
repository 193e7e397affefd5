"""Steps on the stacks of the real store: what one leaves, the next begins with, and it can become an image's layers."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from husk.builder.graph.operations import ExecMount, StepLimits
from husk.engine.model.network import NetworkRequest
from tests.support.layers import Store
from tests.support.steps import Bench


@pytest.fixture
async def store(bench: Bench) -> AsyncIterator[Store]:
    store = Store(bench.config.data_root / "store")
    store.root.mkdir()
    await store.open()
    async with store.diffs.workspace("") as space:
        shutil.copytree(bench.stacks.path("diff:busybox"), space.upper, symlinks=True, dirs_exist_ok=True)
        bench.root = await space.keep()
    bench.steps = bench.steps_on(store.diffs)
    yield store
    await store.close()


async def test_steps_on_top_of_each_other(bench: Bench, store: Store) -> None:
    for number in range(3):
        [bench.root], _ = await bench.run("sh", "-c", f"echo {number} >> /numbers; mkdir -m 700 /made{number}")
    assert len(bench.root.split()) == 4
    assert await bench.sh("cat /numbers; stat -c %a / /made2") == "0\n1\n2\n755\n700\n"
    [unchanged], _ = await bench.run("true")
    added = [str(path) for path in Path(store.diffs.lower(unchanged)[0]).rglob("*")]
    assert unchanged.startswith(bench.root)
    assert added == []
    layers = await store.diffs.layers(bench.root)
    assert len(layers) == 4


async def test_a_file_system_out_of_nothing(bench: Bench, store: Store) -> None:
    out = ExecMount(target="/out", output=1)
    [_, made], _ = await bench.run("sh", "-c", "echo x > /out/file", mounts=[out])
    assert made.startswith("diff:") and len(made.split()) == 1
    bound = ExecMount(target="/in", input=1, read_only=True)
    assert await bench.sh("cat /in/file", mounts=[bound], inputs=[made]) == "x\n"
    scratch = ExecMount(target="/", output=0)
    tools = ExecMount(target="/tools", input=0, read_only=True)
    [stack], _ = await bench.run("/tools/bin/busybox", "touch", "/new", root=scratch, mounts=[tools])
    bound = ExecMount(target="/in", input=1, read_only=True)
    assert await bench.sh("ls -A /in; stat -c %a /in", mounts=[bound], inputs=[stack]) == "new\n755\n"


async def test_a_step_on_a_network_of_the_user_s(bench: Bench) -> None:
    await bench.networks.create(NetworkRequest(name="mine"))
    shown = await bench.sh("cat /etc/resolv.conf; ls /sys/class/net", limits=StepLimits(network="mine"))
    assert "nameserver 127.0.0.11" in shown
    assert "eth0" in shown
    await bench.networks.remove("mine")
