"""Facts that the kernel tells about a socket and that Python has no word for."""

import fcntl
import sys
import termios


def unread(fd: int) -> int:
    """Return the amount sent on a Unix socket that its other end has not read (as the kernel accounts for it)."""
    return int.from_bytes(fcntl.ioctl(fd, termios.TIOCOUTQ, bytes(4)), sys.byteorder)
