"""A worker's two pipes, to and from the daemon, and through it the client."""

import os
import select

from husk.builder.store.sync import packets
from husk.builder.store.sync.packets import SyncError
from husk.storage.workers.answers import Failed, Invalid

_READ_SIZE = 1 << 20


class ClientLines:
    """The lines from and to a client. Output never waits: a client that first wants to be read from would wait too."""

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
        """Read the next bytes; none at the end. Output goes meanwhile."""
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
        """Tell if something has come, or the end."""
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        return bool(poll.poll(0))

    @property
    def behind(self) -> bool:
        """True while the client reads more slowly than it is written to."""
        return bool(self._output)

    def drain(self) -> None:
        """Send the rest, if anybody takes it."""
        os.set_blocking(self._outlet, True)
        self._flush()

    def tell(self, error: SyncError | OSError) -> Invalid | Failed:
        """Return the answer to this end. A client is told of its own mistakes; the end of its stream tells of ours."""
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
