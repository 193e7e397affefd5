"""A dashboard inside the daemon: a client for the edge of the same process, and TLS with the daemon's certificate."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import msgspec

from husk.client.client import Client, connected
from husk.client.http import Connection
from husk.config import TlsConfig

_PIECE = 1 << 18


def client_of(edge: Callable[[], asyncio.Protocol]) -> AbstractAsyncContextManager[Client]:
    """A client that is connected with the edge by pairs of sockets, wherever the daemon listens."""

    async def dial() -> Connection:
        ours, theirs = socket.socketpair()
        try:
            await asyncio.get_running_loop().connect_accepted_socket(edge, theirs)
        except BaseException:
            ours.close()
            theirs.close()
            raise
        try:
            return Connection(*await asyncio.open_unix_connection(sock=ours, limit=_PIECE))
        except BaseException:
            ours.close()
            raise

    return connected(Client(dial))


def own_context(tls: TlsConfig) -> ssl.SSLContext:
    """The certificate that the API shows. Browsers are not asked for one: people sign in with a link."""
    from husk.api.tls import server_context

    return server_context(msgspec.structs.replace(tls, verify=False))
