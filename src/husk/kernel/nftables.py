"""How are nftables commands carried out without starting a process? Through libnftables, one transaction per call."""

import ctypes
import threading

from husk.errors import SystemFault

_LIBRARY = "libnftables.so.1"
# The library keeps state for the whole process.
_lock = threading.Lock()


class Nftables:
    """libnftables, for the network namespace of the thread that calls; the calls of a process are serialized."""

    def __init__(self) -> None:
        try:
            library = ctypes.CDLL(_LIBRARY)
        except OSError as error:
            raise SystemFault(f"{_LIBRARY} cannot be loaded (Debian: apt install libnftables1): {error}") from error
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
        library = self._library
        with _lock:
            # A context opens its netlink socket at once and so belongs to a namespace: none is kept between calls.
            context = library.nft_ctx_new(0)
            if not context:
                raise SystemFault("libnftables cannot be initialized")
            try:
                library.nft_ctx_buffer_output(context)
                library.nft_ctx_buffer_error(context)
                failed = library.nft_run_cmd_from_buffer(context, commands.encode())
                output: bytes = library.nft_ctx_get_output_buffer(context) or b""
                complaint: bytes = library.nft_ctx_get_error_buffer(context) or b""
            finally:
                library.nft_ctx_free(context)
        if failed:
            raise SystemFault(f"nftables: {complaint.decode(errors='replace').strip()}")
        return output.decode(errors="replace")
