"""A worker's two pipes, to and from the daemon, and through it the client."""

import os
import select

from husk.storage.sync import packets
from husk.storage.sync.packets import SyncError
from husk.storage.workers.answers import Failed, Invalid

_READ_SIZE = 1 << 20


class ClientLines:
    """What goes to the client. It is never waited for: a client that first wants to be read from would wait too."""

    def __init__(self, source: int, outlet: int) -> None:
        self._source = source
        self._outlet = outlet
        os.set_blocking(outlet, False)
        self._output = bytearray()

    def write(self, output: bytearray) -> None:
        """Send this, now or later; it is emptied."""
        if output:
            self._output += output
            output.clear()
            self._flush()

    def read(self) -> bytes:
        """What comes next; nothing at the end. What is to be sent goes meanwhile."""
        while self._output and not self.wait():
            pass
        return os.read(self._source, _READ_SIZE)

    def wait(self) -> bool:
        """Wait until something has come, which is True, or some of what is to be sent has gone."""
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        poll.register(self._outlet, select.POLLOUT)
        ready = dict(poll.poll())
        if self._outlet in ready:
            self._flush()
        return self._source in ready

    def ready(self) -> bool:
        """Has something come, or the end?"""
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        return bool(poll.poll(0))

    @property
    def behind(self) -> bool:
        """Does the client read more slowly than it is written to?"""
        return bool(self._output)

    def drain(self) -> None:
        """Send the rest, if anybody takes it."""
        os.set_blocking(self._outlet, True)
        self._flush()

    def tell(self, error: SyncError | OSError) -> Invalid | Failed:
        """How it went when it ended so. A client is told of its own mistakes; the end of its stream tells of ours."""
        if isinstance(error, SyncError):
            self.write(bytearray(packets.error(str(error))))
            self.drain()
            return Invalid(str(error))
        where = f": {os.fsdecode(error.filename)}" if error.filename else ""
        return Failed(f"{(error.strerror or str(error)).lower()}{where}")

    def _flush(self) -> None:
        try:
            while self._output:
                del self._output[: os.write(self._outlet, self._output)]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._output.clear()
