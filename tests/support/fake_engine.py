"""An engine for tests of the client: real HTTP on pairs of sockets, answers as the test says."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, parse_qsl

from husk.api.http.request import Request
from husk.api.http.response import Answer, Response, fields
from husk.api.http.server import Server
from husk.client.http import Connection

JSON = fields({"Content-Type": "application/json"})
Handler = Callable[[Request], Awaitable[Answer]]


class Asked(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    # The query, with all values of a name that comes several times.
    all: dict[str, list[str]]

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class FakeEngine:
    """`answers` says what is answered where; what was asked is in `asked`, without the version of the API."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.connections = 0
        # What is answered where nothing else was said; None for 404.
        self.otherwise: object = None
        self._answers: dict[tuple[str, str], list[object]] = {}
        self.server = Server(self._handle)
        self.answers("GET", "/_ping", Response(200, b"OK", fields({"Api-Version": "1.51"})))

    def answers(self, method: str, path: str, *answers: object) -> None:
        """One after the other, the last one again and again: a document, bytes, a Response, or what makes one."""
        self._answers[method, path] = list(answers)

    def last(self, method: str, path: str) -> Asked:
        return [each for each in self.asked if (each.method, each.path) == (method, path)][-1]

    async def dial(self) -> Connection:
        self.connections += 1
        ours, theirs = socket.socketpair()
        await asyncio.get_running_loop().connect_accepted_socket(self.server, theirs)
        return Connection(*await asyncio.open_unix_connection(sock=ours))

    async def listen(self, path: Path) -> None:
        """Be reached by a Unix socket, too."""
        await asyncio.get_running_loop().create_unix_server(self.server, path)

    async def close(self) -> None:
        await self.server.close(0)

    async def _handle(self, request: Request) -> Answer:
        path = request.path
        if path.startswith("/v1."):
            path = path[path.index("/", 1) :]
        method = request.method.decode()
        waiting = self._answers.get((method, path))
        answer = None if waiting is None else waiting.pop(0) if len(waiting) > 1 else waiting[0]
        body = b"" if request.body is None else await request.body.document(1 << 24)
        query = dict(parse_qsl(request.query_text))
        headers = {name: values[0] for name, values in request.all_headers().items()}
        self.asked.append(Asked(method, path, query, headers, body, parse_qs(request.query_text)))
        if waiting is None and self.otherwise is not None:
            answer = self.otherwise
        elif waiting is None:
            return failed(404, f"nothing is known of {method} {path}")
        if callable(answer):
            return await answer(request)
        if isinstance(answer, Answer):
            return answer
        if isinstance(answer, bytes):
            return Response(200, answer)
        return Response(204) if answer is None else Response(200, json.dumps(answer).encode(), JSON)


def failed(status: int, message: str) -> Response:
    return Response(status, json.dumps({"message": message}).encode(), JSON)
