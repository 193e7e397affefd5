"""Carries out nftables commands without starting a process: through libnftables, one transaction per call.

The library waits with select(), which knows descriptors up to 1023 and ends the whole process at a higher one. A daemon
with many containers has more than that open. So each call happens in a thread of its own with a descriptor table of its
own, empty but for standard input and output: the library's socket gets a low number whatever else is open.
"""

import contextlib
import ctypes
import gc
import os
import threading
from collections.abc import Callable, Iterator

from husk.aio.lone_thread import in_lone_thread
from husk.errors import SystemFault
from husk.kernel import memory

_LIBRARY = "libnftables.so.1"
# The library keeps state for the whole process.
_lock = threading.Lock()

_libc = ctypes.CDLL(None, use_errno=True)
_CLOSE_RANGE = 436  # the same number on every architecture
_UNSHARE = 2
_FIRST, _LAST = 3, 0xFFFFFFFF


class Nftables:
    """libnftables, for the network namespace of the thread that calls; the calls of a process are serialized."""

    def __init__(self) -> None:
        try:
            library = ctypes.CDLL(_LIBRARY)
        except OSError as error:
            raise SystemFault(
                f"{_LIBRARY} cannot be loaded: {error}. Run `husk doctor --fix`, which installs nftables"
            ) from error
        library.nft_ctx_new.restype = ctypes.c_void_p
        library.nft_ctx_new.argtypes = [ctypes.c_uint32]
        for function in (library.nft_ctx_free, library.nft_ctx_buffer_output, library.nft_ctx_buffer_error):
            function.argtypes = [ctypes.c_void_p]
        for function in (library.nft_ctx_get_output_buffer, library.nft_ctx_get_error_buffer):
            function.argtypes = [ctypes.c_void_p]
            function.restype = ctypes.c_char_p
        library.nft_run_cmd_from_buffer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        self._library = library

    def run(self, commands: str) -> str:
        """Carry out all commands or none; what they print. Blocks: call from a thread."""
        with _lock:
            failed, output, complaint = _apart(lambda: self._call(commands.encode()))
        if failed:
            raise SystemFault(f"nftables: {complaint.decode(errors='replace').strip()}")
        return output.decode(errors="replace")

    def _call(self, commands: bytes) -> tuple[int, bytes, bytes]:
        """(whether it failed, what it prints, what it complains about)"""
        library = self._library
        # A context opens its netlink socket at once and so belongs to a namespace: none is kept between calls.
        context = library.nft_ctx_new(0)
        if not context:
            return 1, b"", b"libnftables cannot be initialized"
        try:
            library.nft_ctx_buffer_output(context)
            library.nft_ctx_buffer_error(context)
            failed: int = library.nft_run_cmd_from_buffer(context, commands)
            output: bytes = library.nft_ctx_get_output_buffer(context) or b""
            complaint: bytes = library.nft_ctx_get_error_buffer(context) or b""
        finally:
            library.nft_ctx_free(context)
            # Megabytes, with what others have kept meanwhile in between.
            memory.give_back()
        return failed, output, complaint


def _apart(work: Callable[[], tuple[int, bytes, bytes]]) -> tuple[int, bytes, bytes]:
    """Call `work` in a thread of this one's namespaces with descriptors of its own."""

    def run() -> tuple[int, bytes, bytes]:
        if _libc.syscall(_CLOSE_RANGE, _FIRST, _LAST, _UNSHARE) == 0:
            return work()
        reason = os.strerror(ctypes.get_errno())
        return 1, b"", f"a thread cannot have descriptors of its own: {reason}".encode()

    with _no_collection():
        return in_lone_thread(run, "nftables")


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage is looked for by itself meanwhile: what were found in that thread, and closed, would be another
    descriptor there.

    The program that the engine is part of may use `gc.disable` and `gc.enable` whenever it likes, so that switch is
    left alone; a threshold that it sets meanwhile stays.
    """
    before = gc.get_threshold()
    meanwhile = (0, *before[1:])
    gc.set_threshold(*meanwhile)
    try:
        yield
    finally:
        if gc.get_threshold() == meanwhile:
            gc.set_threshold(*before)
