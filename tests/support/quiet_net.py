"""A network namespace where nothing changes, for a browser: where interfaces come and go it breaks requests off.

    with quiet_net() as net:
        subprocess.run([*net.enter, "chromium", f"--proxy-server={net.proxy}", ...])

What is asked of the proxy in there, whatever the name, goes to the same port of this host's loopback.
"""

import contextlib
import shutil
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import NamedTuple

from husk.kernel.namespaces import run_inside

_CHUNK = 1 << 16


class QuietNet(NamedTuple):
    # In front of a command that is to be in there.
    enter: list[str]
    # The address of the proxy, as seen in there.
    proxy: str


class _Socks(BaseRequestHandler):
    """SOCKS 5 without passwords: a greeting, the wish to be connected, and then bytes both ways."""

    def handle(self) -> None:
        _, methods = self._exactly(2)
        self._exactly(methods)
        self.request.sendall(b"\x05\x00")
        _, _, _, kind = self._exactly(4)
        self._exactly({1: 4, 4: 16}[kind] if kind != 3 else self._exactly(1)[0])
        (port,) = struct.unpack("!H", self._exactly(2))
        try:
            there = socket.create_connection(("127.0.0.1", port))
        except OSError:
            self.request.sendall(b"\x05\x05\x00\x01" + bytes(6))
            return
        with there:
            self.request.sendall(b"\x05\x00\x00\x01" + bytes(6))
            back = threading.Thread(target=_pour, args=(there, self.request))
            back.start()
            _pour(self.request, there)
            back.join()

    def _exactly(self, size: int) -> bytes:
        received: bytes = self.request.recv(size, socket.MSG_WAITALL) if size else b""
        if len(received) < size:
            raise ConnectionError("the browser has gone")
        return received


class _Server(ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser goes when it likes."""


def _pour(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK):
            sink.sendall(data)
    for end, way in ((sink, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with contextlib.suppress(OSError):
            end.shutdown(way)


@contextlib.contextmanager
def quiet_net() -> Iterator[QuietNet]:
    nsenter = shutil.which("nsenter")
    assert nsenter is not None
    script = "ip link set lo up && echo up && exec sleep infinity"
    with subprocess.Popen(["unshare", "--net", "sh", "-c", script], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None and holder.stdout.readline() == b"up\n"
            path = Path(f"/proc/{holder.pid}/ns/net")
            server = run_inside(path, lambda: _Server(("127.0.0.1", 0), _Socks))
            serving = threading.Thread(target=server.serve_forever, daemon=True)
            serving.start()
            try:
                yield QuietNet([nsenter, f"--net={path}"], f"socks5://127.0.0.1:{server.server_address[1]}")
            finally:
                server.shutdown()
                server.server_close()
        finally:
            holder.kill()
