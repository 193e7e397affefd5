"""A dashboard inside the daemon: a client for the edge of the same process, and TLS with the daemon's certificate."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

import msgspec

from husk.api.edge.tls import server_context
from husk.api.http.channel import Channel
from husk.client.client import Client, connected
from husk.client.http import Aside, Connection, Content, Response
from husk.config import TlsConfig
from husk.dashboard.visit import visitor
from husk.watch import request_id

_PIECE = 1 << 18


class _Told(Connection):
    """Tells the edge for whom it asks: the audit log and the log then name the browser, and the request it made."""

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], content: Content, aside: Aside | None = None
    ) -> Response:
        told = {"X-Husk-Visitor": visitor.get(), "X-Request-Id": request_id()}
        more = {name: value for name, value in told.items() if value}
        return await super().request(method, target, {**headers, **more}, content, aside)


def client_of(edge: Callable[[], asyncio.Protocol]) -> AbstractAsyncContextManager[Client]:
    """A client that is connected with the edge by pairs of sockets, wherever the daemon listens."""

    def served() -> asyncio.Protocol:
        made = edge()
        if isinstance(made, Channel):
            made.behind = {"dashboard": "itself"}
        return made

    async def dial() -> Connection:
        ours, theirs = socket.socketpair()
        try:
            await asyncio.get_running_loop().connect_accepted_socket(served, theirs)
        except BaseException:
            ours.close()
            theirs.close()
            raise
        try:
            return _Told(*await asyncio.open_unix_connection(sock=ours, limit=_PIECE))
        except BaseException:
            ours.close()
            raise

    return connected(Client(dial))


def own_context(tls: TlsConfig) -> ssl.SSLContext:
    """The certificate that the API shows. Browsers are not asked for one: people sign in with a link."""

    return server_context(msgspec.structs.replace(tls, verify=False))
