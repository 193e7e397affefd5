"""Emulators of other processors that the kernel has been told of (binfmt_misc)."""

from pathlib import Path

_REGISTERED = Path("/proc/sys/fs/binfmt_misc")


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
