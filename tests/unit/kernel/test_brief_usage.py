"""The few numbers of a control group, from files as the kernel writes them."""

from pathlib import Path

from husk.kernel import brief_usage
from husk.kernel.brief_usage import block_v1, block_v2, field, traffic

NET_DEV = b"""Inter-|   Receive  |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo:  500 5 0 0 0 0 0 0  500 5 0 0 0 0 0 0
  eth0: 1000 10 0 0 0 0 0 0 2000 20 0 0 0 0 0 0
  eth1:    1 10 0 0 0 0 0 0    2 20 0 0 0 0 0 0
"""


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_v1(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "cpuacct/husk/x/cpuacct.usage": "5000\n",
            "memory/husk/x/memory.usage_in_bytes": "8192\n",
            "memory/husk/x/memory.limit_in_bytes": "16384\n",
            "memory/husk/x/memory.stat": "inactive_file 1\ntotal_inactive_file 4096\n",
            "pids/husk/x/pids.current": "3\n",
            "blkio/husk/x/blkio.throttle.io_service_bytes_recursive": "8:0 Read 10\n8:0 Write 20\nTotal 30\n",
            "proc/7/net/dev": NET_DEV.decode(),
        },
    )
    usage = brief_usage.read("/husk/x", 7, str(tmp_path), str(tmp_path / "proc"))
    assert usage == brief_usage.BriefUsage(
        cpu_ns=5000, memory=4096, memory_limit=16384, pids=3, block_read=10, block_written=20, received=1001, sent=2002
    )


def test_v2_without_a_network_of_its_own(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "cgroup.controllers": "cpu memory\n",
            "husk/x/cpu.stat": "usage_usec 7\nuser_usec 3\n",
            "husk/x/memory.current": "100\n",
            "husk/x/memory.max": "max\n",
            "husk/x/memory.stat": "anon 1\ninactive_file 30\n",
            "husk/x/pids.current": "1\n",
            "husk/x/io.stat": "8:0 rbytes=1 wbytes=2 rios=9\n8:16 rbytes=10 wbytes=20\n",
        },
    )
    usage = brief_usage.read("/husk/x", 0, str(tmp_path))
    assert usage is not None
    assert (usage.cpu_ns, usage.memory, usage.pids, usage.block_read, usage.block_written) == (7000, 70, 1, 11, 22)
    assert usage.memory_limit > 1 << 20
    assert (usage.received, usage.sent) == (0, 0)


def test_a_group_that_has_gone_is_none(tmp_path: Path) -> None:
    assert brief_usage.read("/husk/x", 0, str(tmp_path)) is None
    write(tmp_path, {"cgroup.controllers": ""})
    assert brief_usage.read("/husk/x", 0, str(tmp_path)) is None


def test_what_is_no_number_counts_as_nothing() -> None:
    assert field(b"a 1\nbb x\n", b"bb ") == 0
    assert field(b"a 1\n", b"c ") == 0
    assert field(b"a 1\nc 2", b"c ") == 2
    assert block_v1(b"8:0 Read x\nbroken\n") == (0, 0)
    assert block_v2(b"8:0 rbytes=x") == (0, 0)
    assert traffic(b"") == (0, 0)
