"""What is free goes back to the host, also where something that is needed lies above it."""

import ctypes
from pathlib import Path

from husk.kernel import memory

PIECE, COUNT = 64 * 1024, 512


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_free_pieces_below_one_that_is_kept_are_given_back() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    pieces = [ctypes.c_void_p(libc.malloc(ctypes.c_size_t(PIECE))) for _ in range(COUNT)]
    for piece in pieces:
        ctypes.memset(piece, 1, PIECE)
    for piece in pieces[:-1]:
        libc.free(piece)
    before = resident()
    memory.give_back()
    assert before - resident() > PIECE * COUNT // 2
    libc.free(pieces[-1])
