"""Ways that break: a socket that passes everything on until so many pieces have come from the client, and a TCP port
that does until it is cut, and again when it is mended."""

import asyncio
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


class Wire:
    """A port of the loopback that leads to another, in the event loop of the test."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    async def __aenter__(self) -> "Wire":
        await self.mend()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cut()

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Nobody gets through, and who was through is not any more."""
        assert self._server is not None
        self._server.close()
        for writer in list(self._open):
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*self._target)
        await asyncio.gather(self._pump(reader, back), self._pump(there, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.transport.abort()
        self._open.discard(writer)
