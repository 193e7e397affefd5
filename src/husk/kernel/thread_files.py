"""A working directory and a mask for new files that a thread has for itself, and for the threads that it starts."""

import ctypes
import os

_CLONE_FS = 0x200
_MASK = 0o022
_libc = ctypes.CDLL(None, use_errno=True)


def use_own() -> None:
    """Let the calling thread have them, as a daemon has them: `/` and 022.

    What the rest of the process does with its own does not change what containers are given, nor the other way round.
    """
    if _libc.unshare(_CLONE_FS) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    os.chdir("/")
    os.umask(_MASK)
