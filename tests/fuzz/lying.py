"""A registry that lies: about images, digests, sizes, tokens, places, and about HTTP itself."""

import json
import random
import socket
import threading
from contextlib import suppress
from pathlib import Path

from husk.kernel import namespaces
from tests.fuzz import archives, mutate

_DEADLINE = 5.0


class LyingRegistry:
    """Listens in the network namespace of a process, until it is closed."""

    def __init__(self, pid: int, chance: random.Random) -> None:
        self._seed = chance.random()
        self._asked: dict[str, int] = {}
        self._listener: socket.socket = namespaces.run_inside(Path(f"/proc/{pid}/ns/net"), _listen)
        self.host = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._image = archives.image(chance)
        threading.Thread(target=self._serve, name="lying", daemon=True).start()

    def next(self, chance: random.Random) -> None:
        """Use another image from now on."""
        self._image = archives.image(chance)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                channel, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(channel,), name="lying", daemon=True).start()

    def _answer(self, channel: socket.socket) -> None:
        with channel, suppress(OSError):
            channel.settimeout(_DEADLINE)
            head = b""
            while b"\r\n\r\n" not in head:
                piece = channel.recv(65536)
                if not piece:
                    return
                head += piece
            method, path = head.decode("latin-1").split(" ", 2)[:2]
            channel.sendall(self._told(method, path))

    def _told(self, method: str, path: str) -> bytes:
        """Depends on the seed, the path and how often it was asked for, and on nothing else: threads take turns."""
        number = self._asked[path] = self._asked.get(path, 0) + 1
        chance = random.Random(f"{self._seed} {method} {path} {number}")
        status, headers, body = self._honest(chance, method, path)
        if chance.random() < 0.1:
            headers[chance.choice(_HEADERS)] = _line(str(mutate.odd(chance)) if chance.random() < 0.7 else self.host)
        if chance.random() < 0.1:
            status = chance.choice((100, 101, 204, 206, 301, 302, 307, 401, 403, 404, 416, 429, 500, 503, 999))
        if chance.random() < 0.1:
            body = mutate.mutated(chance, [body])
        headers.setdefault("Content-Length", str(len(body)))
        lines = [f"HTTP/1.1 {status} x", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        told = "\r\n".join(lines).encode("latin-1", "replace") + (b"" if method == "HEAD" else body)
        return mutate.mutated(chance, [told]) if chance.random() < 0.1 else told

    def _honest(self, chance: random.Random, method: str, path: str) -> tuple[int, dict[str, str], bytes]:
        image = self._image
        if "/token" in path:
            return (
                200,
                {},
                mutate.mutated_json(
                    chance, [b'{"token":"a","access_token":"b","expires_in":60,"issued_at":"2026-01-02T03:04:05Z"}']
                ),
            )
        if chance.random() < 0.05:
            challenge = mutate.mutated(
                chance, [f'Bearer realm="http://{self.host}/token",service="r",scope="x:y:z"'.encode()]
            )
            return 401, {"WWW-Authenticate": _line(challenge.decode("latin-1"))}, b""
        if method != "GET" and method != "HEAD":
            return (
                202,
                {
                    "Location": chance.choice(
                        ("/v2/app/blobs/uploads/x", f"http://{self.host}/u?a=b", "", "//x", "http://[")
                    ),
                    "Range": "0-0",
                },
                b"",
            )
        if "/tags/list" in path:
            return (
                200,
                {"Link": '</v2/app/tags/list?n=1>; rel="next"'},
                mutate.mutated_json(chance, [b'{"name":"app","tags":["1"]}']),
            )
        if "/manifests/" in path:
            return 200, {"Content-Type": image.media_type, "Docker-Content-Digest": image.digest}, image.manifest
        digest = path.rpartition("/")[2]
        if digest in image.blobs:
            return 200, {"Content-Type": "application/octet-stream"}, image.blobs[digest]
        if path.rstrip("/") == "/v2":
            return 200, {}, b"{}"
        return 404, {}, json.dumps({"errors": [{"code": "BLOB_UNKNOWN", "message": mutate.text(chance)}]}).encode()


def _listen() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0), backlog=64)


def _line(text: str) -> str:
    return text.replace("\r", "").replace("\n", "")[:8000]


_HEADERS = (
    *(
        "Content-Length",
        "Content-Type",
        "Docker-Content-Digest",
        "Location",
        "Content-Range",
        "Retry-After",
        "Content-Encoding",
    ),
    *("Transfer-Encoding", "WWW-Authenticate", "Link", "Connection", "Set-Cookie", "Range"),
)
