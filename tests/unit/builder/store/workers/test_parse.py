"""Limits of a worker that reads foreign text; that they hold is in integration."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from husk.builder.store.workers import parse
from husk.builder.store.workers.frames import FramePieces, frame
from husk.builder.store.workers.jobs import ParseJob

JOB = ParseJob("x", 64 << 20, 3)
# What a worker does for this job, with a caller that writes down the answer.
WORKER = """
from husk.builder.store.workers.jobs import ParseJob
from husk.builder.store.workers.parse import main

class Caller:
    def answer(self, answer):
        open("answer", "w").write(answer.message)

main(ParseJob("answerer", 64 << 20, 3), Caller())
"""

ANSWERER = """
import os, resource, signal

class Answerer:
    def turn(self, question):
        yield {}
"""


@pytest.fixture
def ask(tmp_path: Path):
    """Ask a worker a question that Python answers; what it says, and what it tells its caller."""

    def asked(expression: str) -> tuple[list[bytes], str]:
        (tmp_path / "answerer.py").write_text(ANSWERER.format(expression))
        path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
        done = subprocess.run(
            [sys.executable, "-c", WORKER],
            input=frame(b"?") + b"?",
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            timeout=60,
        )
        pieces = FramePieces()
        pieces.feed(done.stdout)
        told = tmp_path / "answer"
        return [piece for piece in pieces.pieces() if piece], told.read_text() if told.exists() else ""

    return asked


def test_limits_are_beside_what_the_process_has_already(ask):
    kinds = "(resource.RLIMIT_CPU, resource.RLIMIT_AS)"
    (said,), told = ask(f"repr([resource.getrlimit(kind) for kind in {kinds}]).encode()")
    (soft, hard), (memory, _) = ast.literal_eval(said.decode())
    assert hard > soft >= 3 and memory > JOB.memory and told == ""


def test_a_worker_whose_time_is_up_says_so(ask):
    assert ask("os.kill(os.getpid(), signal.SIGXCPU)") == ([], parse.too_long(JOB))


def test_what_is_told_of_a_limit():
    assert parse.too_long(JOB) == "it takes more than 3 s of a processor to be read"
    assert parse.too_large(JOB) == "it takes more than 64 MiB of memory to be read"
