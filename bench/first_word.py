"""Time before a client says the first word of a build to the engine. No engine can change that.

    with FirstWord(engine_socket, directory) as door:
        begin = time.perf_counter()
        subprocess.run(["docker", "build", …], env={"DOCKER_HOST": f"unix://{door.path}"})
        own = door.said - begin

What the client says goes through here to the engine, and back.
"""

import contextlib
import re
import socket
import threading
import time
from pathlib import Path
from typing import Self

_BUILD = re.compile(rb"POST (/v[0-9.]+)?/(grpc|build)\b")
_PIECE = 1 << 16


class FirstWord:
    """A socket in front of the engine's. `said` is the time of the first request that is part of a build."""

    def __init__(self, engine: Path, directory: Path) -> None:
        self.path = directory / "first"
        self.said: float | None = None
        self._engine = engine
        self._listener = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> Self:
        self.path.unlink(missing_ok=True)
        self._listener.bind(str(self.path))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # Whoever waits for the next client is woken by it.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.path.unlink(missing_ok=True)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                engine = socket.socket(socket.AF_UNIX)
                engine.connect(str(self._engine))
                for ends in ((client, engine), (engine, client)):
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_PIECE):
                if self.said is None and _BUILD.match(data):
                    self.said = time.perf_counter()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
