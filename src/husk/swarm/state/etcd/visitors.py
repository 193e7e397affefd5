"""The hosts with connections to a member of etcd now, by the kernel's tables of TCP. Pure but for `read`."""

import ipaddress
import struct
from collections.abc import Collection, Iterable
from pathlib import Path

_FILES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED = "01"


def read() -> str:
    """Blocks."""
    return "".join(path.read_text() for path in _FILES if path.exists())


def visitors(table: str, ports: Collection[int]) -> set[str]:
    """The addresses of those at the other ends of connections to these ports of this host."""
    return set(_others(table.splitlines(), {f"{port:04X}" for port in ports}))


def _others(lines: Iterable[str], ports: Collection[str]) -> Iterable[str]:
    for line in lines:
        words = line.split()
        if len(words) > 3 and words[3] == _ESTABLISHED and words[1].rpartition(":")[2] in ports:
            yield _address(words[2].rpartition(":")[0])


def _address(text: str) -> str:
    """The kernel writes words of 32 bits as numbers of this machine."""
    words = (int(text[begin : begin + 8], 16) for begin in range(0, len(text), 8))
    found = ipaddress.ip_address(b"".join(struct.pack("=I", word) for word in words))
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)
