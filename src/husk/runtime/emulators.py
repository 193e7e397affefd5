"""Emulators of other processors that the kernel has been told of (binfmt_misc).

The abilities of this host's processors: their flags, by the kernel's names.
"""

from pathlib import Path

_REGISTERED = Path("/proc/sys/fs/binfmt_misc")
_TOLD = Path("/proc/cpuinfo")
_MOST = 1 << 20


def registered(directory: Path = _REGISTERED) -> frozenset[str]:
    """The names of those that are enabled. Blocks, though not for long."""
    try:
        return frozenset(entry.name for entry in directory.iterdir() if _is_enabled(entry))
    except OSError:
        return frozenset()


def _is_enabled(entry: Path) -> bool:
    try:
        return entry.name not in ("register", "status") and entry.read_text(errors="replace").startswith("enabled")
    except OSError:
        return False


def processor_flags(file: Path = _TOLD) -> frozenset[str]:
    """Those of the first one; none where the kernel does not tell. Blocks, though not for long."""
    try:
        with file.open(errors="replace") as lines:
            told = next((line for line in iter(lambda: lines.readline(_MOST), "") if line.startswith("flags")), "")
    except OSError:
        return frozenset()
    return frozenset(told.partition(":")[2].split())
