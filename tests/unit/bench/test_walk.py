"""Tracing of the files that run: in a process, in what it starts with its interpreter, and in what it forks."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.walk import Notes

READ = "from husk.text.digits import read_number; read_number('3')"
FORKED = f"""
import os
pid = os.fork()
if not pid:
    os.closerange(3, 100)
    {READ}
    os._exit(0)
os.waitpid(pid, 0)
"""


def noted(notes: Notes, *command: str) -> list[str]:
    def run() -> None:
        subprocess.run(command, env=notes.environment, check=True)

    return notes.files(run)


@pytest.mark.parametrize("code", [READ, FORKED])
def test_what_runs_in_a_process_and_in_its_forks_is_noted(tmp_path: Path, code: str) -> None:
    notes = Notes(tmp_path)
    assert "text/digits.py" in noted(notes, sys.executable, "-c", code)
    assert noted(notes, sys.executable, "-c", "pass") == []


def test_what_a_process_starts_with_its_interpreter_is_noted_too(tmp_path: Path) -> None:
    notes = Notes(tmp_path)
    sources = f"import sys; sys.path.append({str(Path(__file__).resolve().parents[3] / 'src')!r}); {READ}"
    started = f"[sys.executable, '-I', '-S', '-c', {sources!r}], check=True, env={{}}"
    code = f"import subprocess, sys; subprocess.run({started})"
    assert "text/digits.py" in noted(notes, sys.executable, "-c", code)
