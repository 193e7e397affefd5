"""A few numbers of what a control group uses, read as quickly as can be: for those who ask for a thousand of them.

`husk.kernel.accounting` tells all there is. A file that does not exist counts as nothing; a group that does not, None.
"""

import os

import msgspec

from husk.kernel import cgroups

_LARGEST = 1 << 16


class BriefUsage(msgspec.Struct, frozen=True):
    """`memory` is without the cache of files that can go at once, as `docker stats` shows it."""

    cpu_ns: int = 0
    memory: int = 0
    memory_limit: int = 0
    pids: int = 0
    block_read: int = 0
    block_written: int = 0
    received: int = 0
    sent: int = 0


def read(path: str, pid: int, root: str = str(cgroups.ROOT), proc: str = "/proc") -> BriefUsage | None:
    """The numbers of the cgroup `path`, and of the interfaces that `pid` sees unless it is 0."""
    below = path.strip("/")
    v2 = os.path.exists(f"{root}/cgroup.controllers")
    usage = _read_v2(f"{root}/{below}") if v2 else _read_v1(root, below)
    if usage is None or not pid:
        return usage
    received, sent = traffic(_bytes(f"{proc}/{pid}/net/dev"))
    return msgspec.structs.replace(usage, received=received, sent=sent)


def _read_v1(root: str, below: str) -> BriefUsage | None:
    memory = f"{root}/memory/{below}"
    cpu = _bytes(f"{root}/cpuacct/{below}/cpuacct.usage")
    if not cpu and not os.path.isdir(memory):
        return None
    used = _number(_bytes(f"{memory}/memory.usage_in_bytes"))
    idle = field(_bytes(f"{memory}/memory.stat"), b"total_inactive_file ")
    block = f"{root}/blkio/{below}/blkio."
    counters = _bytes(f"{block}throttle.io_service_bytes_recursive")
    read, written = block_v1(counters)
    return BriefUsage(
        cpu_ns=_number(cpu),
        memory=max(0, used - idle),
        memory_limit=_limit(_bytes(f"{memory}/memory.limit_in_bytes")),
        pids=_number(_bytes(f"{root}/pids/{below}/pids.current")),
        block_read=read,
        block_written=written,
    )


def _read_v2(group: str) -> BriefUsage | None:
    cpu = _bytes(f"{group}/cpu.stat")
    if not cpu:
        return None
    used = _number(_bytes(f"{group}/memory.current"))
    read, written = block_v2(_bytes(f"{group}/io.stat"))
    return BriefUsage(
        cpu_ns=field(cpu, b"usage_usec ") * 1000,
        memory=max(0, used - field(_bytes(f"{group}/memory.stat"), b"inactive_file ")),
        memory_limit=_limit(_bytes(f"{group}/memory.max")),
        pids=_number(_bytes(f"{group}/pids.current")),
        block_read=read,
        block_written=written,
    )


def field(text: bytes, name: bytes) -> int:
    """The number behind a name at the beginning of a line."""
    start = 0 if text.startswith(name) else text.find(b"\n" + name) + 1
    if start == 0 and not text.startswith(name):
        return 0
    return _number(text[start + len(name) :].split(b"\n", 1)[0])


def block_v1(text: bytes) -> tuple[int, int]:
    """(read, written) of all devices: lines `8:0 Read 4096`."""
    read = written = 0
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] == b"Read":
            read += _number(words[2])
        elif len(words) == 3 and words[1] == b"Write":
            written += _number(words[2])
    return read, written


def block_v2(text: bytes) -> tuple[int, int]:
    """(read, written) of all devices: lines `8:0 rbytes=4096 wbytes=0 ...`."""
    read = written = 0
    for word in text.split():
        if word.startswith(b"rbytes="):
            read += _number(word[7:])
        elif word.startswith(b"wbytes="):
            written += _number(word[7:])
    return read, written


def traffic(text: bytes) -> tuple[int, int]:
    """(received, sent) of all interfaces but the loopback, from the text of /proc/net/dev."""
    received = sent = 0
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(b":")
        words = rest.split()
        if name.strip() != b"lo" and len(words) > 8:
            received += _number(words[0])
            sent += _number(words[8])
    return received, sent


def _limit(text: bytes) -> int:
    """No limit, or one above what the host has, is what the host has."""
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _number(text)
    return min(limit, available) if limit else available


def _number(text: bytes) -> int:
    text = text.strip()
    return int(text) if text.isdigit() else 0


def _bytes(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, _LARGEST)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
