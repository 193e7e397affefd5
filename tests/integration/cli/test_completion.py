"""Names of containers and images are completed by the shells themselves: zsh at a terminal, fish by its own question.

Bash is in test_commands.py.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.husk import environment, husk
from tests.support.terminal import Terminal

_ZSH = b"""autoload -U compinit && compinit -u -D; eval "$(husk completion zsh)"; echo re"ad"y\n"""


def have(shell: str) -> str:
    """Its path; the test is skipped where it is not installed, which `scripts/setup --test` sees to."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"needs {shell}")
    return found


@pytest.fixture
def shell(daemon: Daemon, tmp_path: Path) -> dict[str, str]:
    """The environment of a shell in which `husk` speaks with a daemon that has a container and an image."""
    husk(daemon, "run", "-d", "--name", "web", "busybox", "sleep", "1000")
    husk(daemon, "tag", "busybox", "mine/app:1")
    (tmp_path / "husk").write_text(f'#!/bin/sh\nexec {sys.executable} -m husk "$@"\n')
    (tmp_path / "husk").chmod(0o755)
    more = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path), "TERM": "dumb", "PS1": "> "}
    return {**environment(daemon), **more}


def test_zsh(shell: dict[str, str]) -> None:
    with Terminal([have("zsh"), "-f", "-i"], shell, columns=200) as terminal:
        terminal.type(_ZSH)
        terminal.expect(b"ready")
        for typed, whole in (
            ("husk logs w", "husk logs web "),
            ("husk rmi mine/a", "husk rmi mine/app:1 "),
            ("husk rmi mine/app:", "husk rmi mine/app:1 "),
            ("husk comp", "husk completion "),
        ):
            terminal.type(b"\x15" + typed.encode() + b"\t")
            terminal.expect(whole.encode())


def test_fish(shell: dict[str, str]) -> None:
    text = "husk completion fish | source\n" + "\n".join(
        f"complete -C {line!r}; echo -"
        for line in ("husk logs w", "husk rmi mine/a", "husk rmi mine/app:", "husk compl")
    )
    done = subprocess.run([have("fish"), "--no-config", "-c", text], env=shell, capture_output=True, text=True)
    found = [[line.partition("\t")[0] for line in part.splitlines()] for part in done.stdout.split("-\n")]
    assert found == [["web"], ["mine/app:1"], ["mine/app:1"], ["completion"], []], done.stderr
