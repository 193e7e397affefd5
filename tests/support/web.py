"""A web server on loopback that a test fills, also with what no good server does.

with WebServer() as web:
    web.files["/a.txt"] = b"hello"
    web.pages["/slow"] = lambda request: ...
"""

import contextlib
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    web: "WebServer"


class _Handler(BaseHTTPRequestHandler):
    server: Any
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.web.answer(self)

    def log_message(self, *_: object) -> None:
        pass


class WebServer:
    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.headers: dict[str, dict[str, str]] = {}  # of answers, by path
        self.pages: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.directories: dict[str, Path] = {}  # by the beginning of paths
        self.authorization = ""  # what must be said, if anything
        self.asked: list[tuple[str, dict[str, str]]] = []
        server = _Server(("127.0.0.1", 0), _Handler)
        server.web = self
        self._server = server
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.ending = threading.Event()  # for answers that wait

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self._server.shutdown()
        self._server.server_close()

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path.partition("?")[0]
        self.asked.append((path, {name.lower(): value for name, value in request.headers.items()}))
        with contextlib.suppress(ConnectionError):
            if self.authorization and request.headers.get("Authorization") != self.authorization:
                self.send(request, 401, b"who are you?")
            elif path in self.pages:
                self.pages[path](request)
            else:
                data = self._data(path)
                self.send(request, 404 if data is None else 200, data or b"", self.headers.get(path, {}))

    def _data(self, path: str) -> bytes | None:
        for beginning, directory in self.directories.items():
            file = directory / path.removeprefix(beginning).lstrip("/")
            if path.startswith(beginning) and file.is_file():
                return file.read_bytes()
        return self.files.get(path)

    @staticmethod
    def send(request: BaseHTTPRequestHandler, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        request.send_response(status)
        for name, value in (headers or {}).items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)
