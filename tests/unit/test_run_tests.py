"""`scripts/run-tests`: a second try for at most three tests, told at the end."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

ONCE = """
import pathlib, pytest

@pytest.mark.parametrize("n", range({count}))
def test_fails_once(n):
    seen = pathlib.Path(__file__).with_name(f"seen-{{n}}")
    if not seen.exists():
        seen.touch()
        raise AssertionError("the first time")
"""


def test_what_fails_once_is_told_as_flaky(tmp_path: Path) -> None:
    done = run(tmp_path, ONCE.format(count=2))
    assert done.returncode == 0
    end = done.stdout[done.stdout.index("once more, alone") :]
    assert "2 passed" in end and "the first time" in end
    assert "flaky, each of them a bug: test_it.py::test_fails_once[0], test_it.py::test_fails_once[1]" in end


def test_what_fails_twice_is_red(tmp_path: Path) -> None:
    done = run(tmp_path, "def test_it():\n    raise AssertionError('always')\n")
    assert done.returncode == 1 and "once more" in done.stdout and "FLAKY" not in done.stdout


def test_more_than_three_get_no_second_try(tmp_path: Path) -> None:
    done = run(tmp_path, ONCE.format(count=4))
    assert done.returncode == 1 and "once more" not in done.stdout and "4 tests failed" in done.stdout


def test_what_fails_is_named_at_once(tmp_path: Path) -> None:
    done = run(tmp_path, ONCE.format(count=1))
    assert "failed: test_it.py::test_fails_once[0] (call)" in done.stdout[: done.stdout.index("= FAILURES =")]


def test_where_flaky_tests_are_looked_for_there_is_no_second_try(tmp_path: Path) -> None:
    done = run(tmp_path, ONCE.format(count=1), HUSK_TEST_ONCE="1")
    assert done.returncode == 1 and "once more" not in done.stdout


def test_a_green_run_is_green_and_an_empty_one_is_not(tmp_path: Path) -> None:
    assert run(tmp_path, "def test_it():\n    pass\n").returncode == 0
    assert run(tmp_path, "").returncode == 5


def run(directory: Path, tests: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    (directory / "test_it.py").write_text(tests)
    command = [sys.executable, str(ROOT / "scripts/run-tests"), "-n", "0", "-p", "no:cacheprovider", "test_it.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HUSK_TEST_ONCE": "", **variables}
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
