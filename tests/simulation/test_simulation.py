"""As many lives of a swarm as there is time for, the same ones each time; `make simulate` lives others."""

import os
import subprocess
import sys

import pytest

FIRST = 389733003
# In seconds.
SECONDS = float(os.environ.get("SIMULATION_SECONDS", "30"))


def lives(*arguments: str) -> str:
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    return done.stdout


@pytest.mark.timeout(SECONDS + 300)
def test_whatever_happens_to_a_swarm_what_must_hold_holds_and_it_comes_to_what_is_declared():
    print(lives("--seed", str(FIRST), "--seeds", "100000", "--seconds", str(SECONDS)))


def test_a_life_is_the_same_each_time_it_is_lived():
    first, second = (lives("--seed", "7", "--story") for _ in range(2))
    assert first == second and "all faults have ended" in first
