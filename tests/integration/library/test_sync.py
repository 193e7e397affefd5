"""`husk.run` in scripts and notebooks: with an engine of the process, and with a daemon's."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from husk.library import blocking
from tests.support.engines import Place

SOURCES = Path(__file__).parents[3] / "src"

SCRIPT = """
import asyncio, sys, husk
def run(): return husk.run("busybox", "echo hi", data_root=sys.argv[1]).stdout
async def cell(): return run()
print(run(), asyncio.run(cell()))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it runs real containers")
def test_a_script_needs_no_daemon_and_leaves_nothing():
    with Place(own_exec_root=False) as place:
        command = [sys.executable, "-W", "error", "-c", SCRIPT, str(place.config.data_root)]
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(SOURCES)}, timeout=60
        )
        assert (done.stdout, done.stderr, done.returncode) == ("b'hi\\n' b'hi\\n'\n", "", 0)


async def test_a_cell_uses_the_daemon_that_there_is(daemon, image, monkeypatch):
    monkeypatch.setenv("HUSK_HOST", daemon.host)
    try:
        result = blocking.run(image, "echo hi")
        assert (result.stdout, result.exit_code) == (b"hi\n", 0)
        assert blocking.run(image, "sleep 100", timeout=0.1).timed_out
        calls = [asyncio.to_thread(blocking.run, image, ["echo", str(number)]) for number in range(4)]
        assert [each.stdout for each in await asyncio.gather(*calls)] == [b"0\n", b"1\n", b"2\n", b"3\n"]
    finally:
        blocking.close()
