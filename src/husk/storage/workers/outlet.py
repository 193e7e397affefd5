"""Sending of the body of an HTTP answer by a worker: in chunks, into the client's own socket, past the daemon.

The daemon has sent the answer's head and sends its end; all between them is the worker's. Large files do not pass
through the worker either: the kernel hands their pages to the socket. Through the daemon `docker cp` of 200 MB out of a
container takes 1.8 to 2.3 times as long (`bench.copies`, docs/performance.md).
"""

import errno
import os
import select

_BUFFER = 1 << 20
# A client may keep the size of a chunk in 32 bits.
_LARGEST_CHUNK = 1 << 30
_CANNOT_HAND_OVER = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


class Outlet:
    """A body on its way to a socket, which may be one that does not block."""

    def __init__(self, socket: int) -> None:
        self._socket = socket
        self._buffer = bytearray()
        self._poll = select.poll()
        self._poll.register(socket, select.POLLOUT)

    def write(self, data: bytes, /) -> None:
        self._buffer += data
        if len(self._buffer) >= _BUFFER:
            self.flush()

    def flush(self) -> None:
        if self._buffer:
            self._send(b"%x\r\n%b\r\n" % (len(self._buffer), bytes(self._buffer)))
            self._buffer.clear()

    def hand_over(self, file: int, size: int) -> int:
        """Send the next `size` bytes of a file; what it lacks, for somebody has truncated it, is zeros."""
        left = size
        while left:
            chunk = min(left, _LARGEST_CHUNK)
            self._send(b"%x\r\n" % chunk)
            self._send_file(file, chunk)
            self._send(b"\r\n")
            left -= chunk
        return size

    def _send_file(self, file: int, left: int) -> None:
        try:
            while left and (sent := self._pass_pages(file, left)):
                left -= sent
        except OSError as error:
            if error.errno not in _CANNOT_HAND_OVER:
                raise
        while left:
            data = os.read(file, min(left, _BUFFER)) or bytes(min(left, _BUFFER))
            self._send(data)
            left -= len(data)

    def _pass_pages(self, file: int, count: int) -> int:
        while True:
            try:
                return os.sendfile(self._socket, file, None, count)
            except BlockingIOError:
                self._poll.poll()

    def _send(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._socket, left) :]
            except BlockingIOError:
                self._poll.poll()
