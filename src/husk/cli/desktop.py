"""The desktop of a person who types a command: is there one, and its browser."""

import subprocess
from collections.abc import Mapping
from pathlib import Path


def present(environment: Mapping[str, str]) -> bool:
    """Return True if there is a desktop: a browser inside the terminal would be in the way."""
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def show(page: Path) -> "subprocess.Popen[bytes] | None":
    """Open a page in the browser, if there is one. A file: everybody on the host reads the arguments of a command."""
    nothing = subprocess.DEVNULL
    try:
        return subprocess.Popen(["xdg-open", str(page)], stdin=nothing, stdout=nothing, stderr=nothing)
    except OSError:
        return None  # the link is printed
