"""The abilities of this host's processors: their flags, by the kernel's names."""

from pathlib import Path

_TOLD = Path("/proc/cpuinfo")
_MOST = 1 << 20


def flags(file: Path = _TOLD) -> frozenset[str]:
    """Those of the first one; none where the kernel does not tell. Blocks, though not for long."""
    try:
        with file.open(errors="replace") as lines:
            told = next((line for line in iter(lambda: lines.readline(_MOST), "") if line.startswith("flags")), "")
    except OSError:
        return frozenset()
    return frozenset(told.partition(":")[2].split())
