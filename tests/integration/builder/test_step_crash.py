"""A daemon that is killed in the middle of a step: the next one ends and removes what is left of it."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from husk.composition import Engine
from husk.config import Config
from husk.engine.model.filters import NO_FILTERS
from husk.kernel.process import given, start_time
from tests.support.litter import Traces
from tests.support.waiting import until_async

# Runs a step that never ends, on the roots that it is told.
_STEP = """
import asyncio, sys
from pathlib import Path
from husk.config import Config
from husk.builder.graph.operations import ExecMount
from tests.support.steps import cache, open_bench

async def main():
    config = Config(data_root=Path(sys.argv[1]), exec_root=Path(sys.argv[2]), bip=sys.argv[3])
    async with open_bench(config) as bench:
        mounts = [cache("/cache"), ExecMount(target="/out", output=1)]
        script = "echo here > /cache/file; (sleep 600; true) & touch /out/up; sleep 600"
        await bench.run("sh", "-c", script, mounts=mounts, cgroup_parent=sys.argv[4])

asyncio.run(main())
"""


@pytest.mark.parametrize("parent", ["", "/hs-crash"])
async def test_what_a_killed_daemon_leaves_of_a_step_goes(place: Config, parent: str) -> None:
    traces = Traces(place, place.data_root.parent)
    command = [sys.executable, "-c", _STEP, str(place.data_root), str(place.exec_root), place.bip, parent]
    root = Path(__file__).resolve().parents[3]
    environment = {**os.environ, "PYTHONPATH": f"{root}/src:{root}"}
    process = subprocess.Popen(command, cwd=root, env=environment)
    try:
        await until_async(lambda: _running(place), "a step that runs", 60)
        traces.remember()
    finally:
        process.kill()
        process.wait()
    pids = _running(place)
    assert pids
    # That of the step, and that of a runtime which waits for the next one.
    bundles = [str(path) for path in (place.exec_root / "containers").iterdir()]
    async with Engine.open(place) as engine:
        assert not any(start_time(pid) for pid in pids)
        assert given(bundles) == []
        assert engine.containers.listing(all=True, limit=0, filters=NO_FILTERS) == []
        assert await asyncio.to_thread(traces.settle, os.getpid()) == []
        left = [path for top in (place.data_root, place.exec_root) for path in (top / "containers").glob("*")]
        assert left == []
        # What belongs to others is untouched.
        [cache] = [path for path in (place.data_root / "cache-mounts").iterdir() if path.name[0] != "."]
        assert (cache / "file").read_text() == "here\n"
    assert not any(path.exists() for path in Path("/sys/fs/cgroup").glob("*/hs-crash"))


def _running(place: Config) -> list[int]:
    """The processes of a step that has begun."""
    if not list((place.data_root / "stacks").glob("work-*/upper/up")):
        return []
    marks = [os.fsencode(path.name) for path in (place.exec_root / "containers").glob("*")]
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            try:
                groups = Path(f"/proc/{entry}/cgroup").read_bytes()
            except OSError:
                continue
            if any(mark in groups for mark in marks):
                found.append(int(entry))
    return found if len(found) > 2 else []
