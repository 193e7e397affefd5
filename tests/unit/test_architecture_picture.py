"""`scripts/architecture-picture`: docs/architecture.svg shows the imports as they are."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_committed_picture_is_that_of_the_imports() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "architecture-picture"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
