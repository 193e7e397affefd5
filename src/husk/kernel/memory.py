"""Memory: given back to the host when it is not needed (`keep_little`), a fork's own before it writes (`own_pages`).

By default glibc's malloc gives threads pools of their own, which seldom shrink: each of ours in which libnftables once
worked kept up to 17 MB of nothing. Python needs no such pools: its threads take turns. With one pool, and large pieces
taken from the kernel directly, an idle daemon needs 13 MiB less, and does not grow with every change of the firewall.
"""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
# What comes out of a socket at once (250 KiB) is no such piece: new pages for each cost as much as to receive it.
_LARGE = 512 * 1024
_MOST_FREE = 1024 * 1024
_LARGEST_KEPT = 8 << 20
_MOST_KEPT = 16 << 20
_MADV_POPULATE_WRITE = 23


def keep_little() -> None:
    """For the whole process, best before it has threads. Where the C library is another one, nothing happens."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    for parameter, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _MOST_FREE)):
        mallopt(parameter, value)


def keep_much() -> None:
    """For a process that ends with its work: what it has had once it keeps for the next piece of data.

    By default each piece of a megabyte is new memory, which the kernel clears first.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)
        mallopt(_TRIM_THRESHOLD, _MOST_KEPT)


def give_back() -> None:
    """Let the host have what is free now, also between what is not: whoever took much beside others calls it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))


def own_pages() -> None:
    """Take over at once what a fork shares with its parent, so that no write has to wait for the copy of a page.

    Python writes wherever it looks: it counts who refers to what. Before Linux 5.14, nothing happens.
    """
    libc = ctypes.CDLL(None)
    with open("/proc/self/maps") as maps:
        spans = [line.split()[0].split("-") for line in maps if line.split()[1] == "rw-p"]
    for start, end in ((int(start, 16), int(end, 16)) for start, end in spans):
        libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _MADV_POPULATE_WRITE)
