"""The dashboard's scripts that touch no page, tested by node's own tests: the files *.test.mjs beside this one."""

import subprocess
from pathlib import Path

import pytest
from playwright._impl._driver import compute_driver_executable

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", sorted(path.name for path in HERE.glob("*.test.mjs")))
def test_scripts(name: str) -> None:
    # Playwright brings a node of its own, so no other is needed.
    node, _ = compute_driver_executable()
    done = subprocess.run([node, "--test", HERE / name], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
