"""Rights that a process gives up. Each test does it in a process of its own."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def in_a_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_programs_of_root_have_no_powers():
    code = "import subprocess\nfrom husk.kernel import jail\njail.give_up_powers()\n"
    code += (
        "print(subprocess.run(['grep', '-E', 'CapEff|NoNewPrivs', '/proc/self/status'], capture_output=True).stdout)"
    )
    said = in_a_process(code)
    assert "CapEff:\\t0000000000000000" in said
    assert "NoNewPrivs:\\t1" in said


def test_all_that_was_started_ends_with_the_first():
    code = """import os, subprocess, sys, time
from husk.kernel import jail
ours = os.pidfd_open(os.getpid())
jail.own_processes()
child = os.fork()
if child == 0:
    jail.end_with(ours)
    assert os.getpid() == 1
    subprocess.Popen(["sleep", "1234567"], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os._exit(0)
os.waitpid(child, 0)
"""
    in_a_process(code)
    assert subprocess.run(["pgrep", "-f", "^sleep 1234567$"]).returncode == 1
