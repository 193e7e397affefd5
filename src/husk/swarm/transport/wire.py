"""Connections between hosts: calls over TLS, and in plain words why they fail."""

import asyncio
import errno
import os
import socket
import ssl

from husk.rpc.grpc.connection import GrpcConnection
from husk.text.endpoints import HostPort

SILENT = "no answer in time"
_AT_ONCE = "the connection was closed at once"
_PIECE = 1 << 16
# Seconds without a word of the other host, until it is asked whether it is there, and between such questions.
_KEEPALIVE = 15
# Milliseconds for which the other host may leave unanswered what was sent to it, such a question too.
_UNANSWERED = 10_000


async def connect(endpoint: HostPort, tls: ssl.SSLContext | None, name: str, patience: float) -> GrpcConnection:
    """A connection on which the other side has answered; `name` must be in its certificate. OSError says why not."""
    below: StreamBytes | None = None
    try:
        async with asyncio.timeout(patience):
            pair = await asyncio.open_connection(
                endpoint.host, endpoint.port, ssl=tls, server_hostname=name if tls is not None else None
            )
            keep_alive(pair[1].get_extra_info("socket"))
            below = StreamBytes(*pair)
            connection = await GrpcConnection(below, client=True).__aenter__()
            try:
                # TLS lets a client begin before the server has looked at its certificate.
                await connection.ping()
            except BaseException:
                await connection.close()
                raise
            return connection
    except TimeoutError:
        raise OSError(SILENT) from None
    except asyncio.CancelledError:
        if (current := asyncio.current_task()) is not None and current.cancelling():
            raise
        raise OSError(_ended((below and below.trouble) or _AT_ONCE, tls)) from None
    except ConnectionError as error:
        if below is None:
            raise
        raise OSError(_ended(plainly(error), tls)) from None


def _ended(trouble: str, tls: ssl.SSLContext | None) -> str:
    """Say why a connection ended that was never used: with a reset the reason that TLS had may be lost."""
    if tls is None or trouble.startswith("TLS"):
        return trouble
    return f"{trouble}: it may not take the certificate that we have (TLS)"


def keep_alive(connection: socket.socket) -> None:
    """Notice when the machine at the other end has gone."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNANSWERED)


def plainly(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not to be trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {getattr(error, 'reason', '') or error}"
    if isinstance(error, OSError) and error.errno in errno.errorcode:
        return os.strerror(error.errno or 0)
    return str(error) or "the connection was closed"


class StreamBytes:
    """A connection's bytes, as gRPC wants them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.trouble = ""

    async def read(self) -> bytes:
        try:
            return await self._reader.read(_PIECE)
        except OSError as error:
            raise self._broken(error) from None

    async def write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise self._broken(error) from None

    async def finish(self) -> None:
        self.abort()

    def abort(self) -> None:
        self._writer.transport.abort()

    def _broken(self, error: OSError) -> ConnectionError:
        self.trouble = plainly(error)
        return ConnectionResetError(self.trouble)
