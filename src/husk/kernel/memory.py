"""How does memory that is not needed any more get back to the host? By telling glibc's malloc not to keep it.

By default it gives threads pools of their own, which seldom shrink: each of ours in which libnftables once worked kept
up to 17 MB of nothing. Python needs no such pools: its threads take turns. With one pool, and large pieces taken from
the kernel directly, an idle daemon needs 13 MiB less, and does not grow with every change of the firewall.
"""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_LARGE = 128 * 1024


def keep_little() -> None:
    """For the whole process, best before it has threads. Where the C library is another one, nothing happens."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    for parameter, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _LARGE)):
        mallopt(parameter, value)
