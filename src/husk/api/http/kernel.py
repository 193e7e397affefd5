"""What the kernel tells about a socket that Python has no word for."""

import fcntl
import sys
import termios


def unread(fd: int) -> int:
    """How much of what was sent on a Unix socket its other end has not read (as the kernel accounts for it)."""
    return int.from_bytes(fcntl.ioctl(fd, termios.TIOCOUTQ, bytes(4)), sys.byteorder)
