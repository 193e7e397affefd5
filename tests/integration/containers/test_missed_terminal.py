"""On a busy host conmon may miss the terminal that a runtime gives it, and give up: the container is made once more."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon

# The runtime makes the container and hands its terminal over, and the monitor ends without a word: the first `times`.
MISSES = """\
#!{python}
import os, socket, subprocess, sys
from argparse import ArgumentParser
parser = ArgumentParser(allow_abbrev=False)
for name in ("cid", "runtime", "bundle"):
    parser.add_argument("--" + name)
parser.add_argument("--runtime-arg", action="append", default=[])
parser.add_argument("--terminal", action="store_true")
given, _ = parser.parse_known_args()
missed = len(open({count!r}).readlines())
if not given.terminal or missed >= {times}:
    os.execv({conmon!r}, sys.argv)
listener = socket.socket(socket.AF_UNIX)
listener.bind(given.bundle + "/console")
listener.listen()
options = ["--bundle", given.bundle, "--pid-file", given.bundle + "/pid", "--console-socket", given.bundle + "/console"]
subprocess.run([given.runtime, *given.runtime_arg, "create", *options, given.cid], check=True)
open({count!r}, "a").write("missed\\n")
sys.exit(1)
"""


@pytest.fixture(params=[1, 2])
def misses(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Daemon, int, Path]]:
    """A daemon, how often its monitors miss a terminal, and a file with a line for each time one did."""
    times: int = request.param
    count = tmp_path / "count"
    count.touch()
    monitor = tmp_path / "programs" / "conmon"
    monitor.parent.mkdir()
    conmon = shutil.which("conmon")
    monitor.write_text(MISSES.format(python=sys.executable, count=str(count), times=times, conmon=conmon))
    monitor.chmod(0o755)
    with Daemon(environment={"PATH": f"{monitor.parent}:{os.environ['PATH']}"}) as daemon:
        yield daemon, times, count


def test_a_container_whose_monitor_missed_its_terminal(misses: tuple[Daemon, int, Path]) -> None:
    daemon, times, count = misses
    done = daemon.docker("run", "-t", "--name", "made", "busybox", "tty", check=False)
    assert count.read_text() == "missed\n" * times
    if times == 1:
        assert (done.returncode, done.stdout) == (0, "/dev/pts/0\n")
    else:
        assert (done.returncode, "create failed: no message" in done.stderr) == (125, True)
        assert daemon.docker("start", "-a", "made").stdout == "/dev/pts/0\n"
    daemon.docker("rm", "made")
    daemon.check_no_litter()
