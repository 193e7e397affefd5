"""A way to a daemon that breaks: a socket that passes everything on, until so many pieces have come from the client."""

import contextlib
import socket
import threading
from pathlib import Path


class CutConnection:
    """All connections through it end, hard, after `pieces` reads from clients, or when `cut` is called."""

    def __init__(self, path: Path, target: Path, pieces: int) -> None:
        self.path = path
        self._target = str(target)
        self._left = pieces
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self.is_cut = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "CutConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self.path.unlink(missing_ok=True)

    def cut(self) -> None:
        with self._lock:
            self.is_cut.set()
            for each in (self._listener, *self._open):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._target)
                with self._lock:
                    self._open += [client, server]
                for ends, counted in (((client, server), True), ((server, client), False)):
                    threading.Thread(target=self._pump, args=(*ends, counted), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if counted:
                    with self._lock:
                        self._left -= 1
                    if self._left < 0:
                        self.cut()
                        return
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
