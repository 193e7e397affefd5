"""A daemon that is killed at any line of the store's code: what it acknowledged is there, and only that."""

import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM, ROOT = "tests.unit.storage.state.killed", Path(__file__).parents[4]


def test_a_kill_at_any_line_loses_nothing_and_brings_nothing_back() -> None:
    # In memory, where there is such a place: a kill is no power cut.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as root:
        done = subprocess.run(
            [sys.executable, "-m", PROGRAM, root], cwd=ROOT, capture_output=True, text=True, timeout=300
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > 100, "so many lines it was killed at"
