"""Free memory goes back to the host, also where something that is needed lies above it."""

import ctypes
import subprocess
import sys
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


def test_a_worker_keeps_the_memory_of_one_piece_for_the_next() -> None:
    """In a process of its own: what is set stays."""
    script = """if True:
        import os, resource
        from husk.kernel.memory import keep_much
        def faults():
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            for _ in range(20):
                with open("/dev/zero", "rb", buffering=0) as zeros:
                    assert len(os.read(zeros.fileno(), 1 << 20)) == 1 << 20
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        keep_much()
        faults()
        print(faults())
    """
    told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert int(told) < 256  # as many as one piece has pages
