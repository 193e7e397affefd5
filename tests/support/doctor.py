"""The soundness of a daemon's store, told by the real `husk doctor --check-store`."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.daemon import Daemon

_SOURCES = Path(__file__).resolve().parents[2] / "src"


def check_store(daemon: Daemon, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "husk", "doctor", "--check-store", "--data-root", str(daemon.config.data_root)]
    return subprocess.run(
        [*command, *flags], capture_output=True, text=True, timeout=60, cwd="/",
        env={**os.environ, "PYTHONPATH": str(_SOURCES)},
    )  # fmt: skip


def assert_sound(daemon: Daemon, *flags: str) -> None:
    """Nothing is damaged, and nothing is left over."""
    done = check_store(daemon, *flags)
    assert done.returncode == 0, f"the store is damaged:\n{done.stdout}{done.stderr}"
    assert "warn" not in done.stdout, f"something is left over:\n{done.stdout}"
    assert "The store is sound" in done.stdout
