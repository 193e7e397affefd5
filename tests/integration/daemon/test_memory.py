"""Memory that the daemon needed for a moment is given back. Buffers of libnftables in its threads were once kept for
ever."""

import itertools
import re
from pathlib import Path

from tests.support.daemon import Daemon

POOL = 64 << 20


def test_one_pool_of_memory_serves_all_threads(daemon: Daemon) -> None:
    assert daemon.process is not None
    for number in range(3):
        daemon.docker("network", "create", f"n{number}")
    for number in range(3):
        daemon.docker("network", "rm", f"n{number}")
    assert pools(Path(f"/proc/{daemon.process.pid}/maps").read_text()) == []


def pools(maps: str) -> list[str]:
    """Return the places where threads have pools of their own: each lies at a multiple of 64 MiB and takes as much,
    of which the first part is in use and the rest nobody may touch. Other memory may begin at such a place by
    chance."""
    lines = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) (\S+) 00000000 00:00 0 *$", maps, re.MULTILINE)
    found = [(int(start, 16), int(end, 16), rights) for start, end, rights in lines]
    pairs = itertools.pairwise(found)
    return [
        hex(start)
        for (start, end, rights), (rest, last, others) in pairs
        if (rights, others) == ("rw-p", "---p") and end == rest and start % POOL == 0 and last == start + POOL
    ]


def test_pools_are_found() -> None:
    used = "7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \n"
    rest = "7f0000021000-7f0004000000 ---p 00000000 00:00 0 \n"
    assert pools(used + rest) == ["0x7f0000000000"]
    assert pools(used) == [] and pools(used + "7f0000021000-7f0000022000 ---p 00000000 00:00 0 \n") == []
