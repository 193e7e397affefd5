"""Would reading a file have to wait for a disk? mincore(2) tells, also where preadv2(RWF_NOWAIT) is not offered."""

import ctypes
import mmap

_FAILED = ctypes.c_void_p(-1).value
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
)  # fmt: skip
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)


def is_cached(file: int, size: int) -> bool:
    """Whether the first `size` bytes of a file are in memory; False if that cannot be told."""
    if size == 0:
        return True
    pages = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE))
    address = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file, 0)
    if address == _FAILED:
        return False
    try:
        return _libc.mincore(address, size, pages) == 0 and all(page & 1 for page in pages.raw)
    finally:
        _libc.munmap(address, size)
