"""Writing of /etc/hosts, /etc/hostname and /etc/resolv.conf, which a container has mounted and which are its own.

A start makes them anew (`replace`), whatever has become of the old ones. While the container runs a new file would
not be seen: what is mounted there is the old one, so that is changed in place (`overwrite`). The container may hold a
lease on it, or have made it a gigabyte long: nothing here waits for that, and nothing reads more than it asks for.
"""

import os
import stat
from pathlib import Path

_FLAGS = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


def replace(path: Path, text: str) -> None:
    """Put a new file in the place of an old one, if there is one."""
    data = text.encode(errors="surrogateescape")
    try:
        _make(path, data)
    except FileExistsError:
        fresh = path.with_name(f".{path.name}.new")
        fresh.unlink(missing_ok=True)
        _make(fresh, data)
        os.rename(fresh, path)


def _make(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o644)
    try:
        _write(fd, data)
        os.fchmod(fd, 0o644)
    finally:
        os.close(fd)


def overwrite(path: Path, text: str) -> bool:
    """Change a file in place; False if somebody has a lease on it, which the kernel takes away after a while.

    Nothing happens where there is no such file, or something else has its name.
    """
    data = text.encode(errors="surrogateescape")
    try:
        fd = _open(path, os.O_WRONLY)
    except BlockingIOError:
        return False
    if fd is None:
        return True
    try:
        _write(fd, data)
        os.ftruncate(fd, len(data))
    finally:
        os.close(fd)
    return True


def begins_with(path: Path, limit: int) -> str | None:
    """The first bytes of a file, at most so many; None if it is no file. BlockingIOError if somebody has a lease."""
    fd = _open(path, os.O_RDONLY)
    if fd is None:
        return None
    try:
        return os.pread(fd, limit, 0).decode(errors="surrogateescape")
    finally:
        os.close(fd)


def read_ours(path: Path | str) -> str:
    """A file that no container can write to: one of the host's own, or of the engine's. Empty if there is none."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _open(path: Path, how: int) -> int | None:
    try:
        fd = os.open(path, how | _FLAGS)
    except BlockingIOError:
        raise
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return None


def _write(fd: int, data: bytes) -> None:
    done = 0
    while done < len(data):
        done += os.pwrite(fd, data[done:], done)
