"""The `husk` command for tests: this tree's, against the daemon of the test."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.daemon import COMMAND_TIMEOUT, Daemon
from tests.support.terminal import Terminal

_SOURCES = Path(__file__).resolve().parents[2] / "src"


def environment(daemon: Daemon, **more: str) -> dict[str, str]:
    """That of someone who speaks to this daemon, without settings of docker's client."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("DOCKER_", "HUSK_"))}
    settings = {"HUSK_HOST": daemon.host, "DOCKER_CONFIG": str(daemon.directory / "docker"), "TERM": "xterm"}
    return {**ours, "PYTHONPATH": str(_SOURCES), **settings, **more}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "husk", *arguments]


def husk(
    daemon: Daemon,
    *arguments: str,
    input: str | None = None,
    code: int | None = 0,
    more: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run it to its end behind pipes; it has to end with this code, unless that is None."""
    done = subprocess.run(
        command(*arguments),
        input="" if input is None else input,
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT,
        env=environment(daemon, **(more or {})),
    )
    told = f"husk {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    assert code is None or done.returncode == code, told
    assert "Traceback" not in done.stderr, done.stderr
    return done


def at_terminal(daemon: Daemon, *arguments: str, **size: int) -> Terminal:
    return Terminal(command(*arguments), environment(daemon), **size)
