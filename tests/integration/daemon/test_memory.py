"""Does the daemon give back what it needed for a moment? What libnftables took in its threads it once kept for ever."""

import re
from pathlib import Path

from tests.support.daemon import Daemon


def test_one_pool_of_memory_serves_all_threads(daemon: Daemon) -> None:
    assert daemon.process is not None
    for number in range(3):
        daemon.docker("network", "create", f"n{number}")
    for number in range(3):
        daemon.docker("network", "rm", f"n{number}")
    # A thread's own pool lies at a multiple of 64 MiB, and begins with a mapping that is in use.
    maps = Path(f"/proc/{daemon.process.pid}/maps").read_text()
    starts = [int(line, 16) for line in re.findall(r"^([0-9a-f]+)-[0-9a-f]+ rw-p 00000000 00:00 0 *$", maps, re.M)]
    assert [hex(start) for start in starts if start % (64 << 20) == 0] == []
