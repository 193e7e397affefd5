"""Files of the host that tell what it is: settings, profiles, what the kernel shows of itself."""

import os
from pathlib import Path

PROCESSORS = Path("/sys/devices/system/cpu")


def text(path: str) -> str:
    """Read the text of a file; empty where it cannot be read."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def profile(path: str) -> str:
    """A file that somebody named in the settings: OSError or UnicodeDecodeError tells what is wrong with it."""
    return Path(path).read_text()


def disk(path: Path) -> tuple[int, int]:
    """The size of the disk that a path is on, and the bytes of it that are free. It blocks."""
    found = os.statvfs(path)
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize


def throttles(processors: Path = PROCESSORS) -> list[str]:
    """List the paths that tell how often each processor was slowed down for its heat, and so what the neighbours do."""
    found = [path for path in processors.glob("cpu[0-9]*/thermal_throttle") if path.parent.name[3:].isdigit()]
    return [str(path) for path in sorted(found, key=lambda path: int(path.parent.name[3:]))]
