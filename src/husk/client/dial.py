"""Connections to a daemon: by a Unix socket, by TCP with or without TLS, or through ssh."""

import asyncio
import ssl
from pathlib import Path

from husk.client import ssh
from husk.client.address import Address
from husk.client.http import Connection, Dial, unreached
from husk.client.tls import Stream
from husk.errors import InvalidParameter
from husk.text.digits import read_number
from husk.trust import trusting

_PIECE = 1 << 18
_HANDSHAKE = 60.0


def dialer(address: str, tls: ssl.SSLContext | None = None) -> Dial:
    """Return a function that connects to `unix:///path`, to `tcp://host:port`, with TLS if there is a context for it,
    or to `ssh://user@host`; InvalidParameter for any other address."""
    scheme, _, rest = address.partition("://")
    if scheme == "ssh":
        ssh.arguments(address)
        return lambda: ssh.dial(address)
    if scheme == "unix" and rest:
        return lambda: _unix(rest)
    if scheme == "tcp" and rest:
        host, _, port = rest.rstrip("/").rpartition(":")
        if host and (number := read_number(port, most=0xFFFF)) is not None:
            return lambda: _tcp(address, host.strip("[]"), number, tls)
    raise InvalidParameter(f"invalid address {address!r}: expected unix:///PATH, tcp://HOST:PORT or ssh://USER@HOST")


def dialer_to(place: Address) -> Dial:
    """Return a function that connects to a resolved address, with TLS if it has certificates."""
    if place.certificates is None:
        return dialer(place.url)
    try:
        return dialer(place.url, client_context(place.certificates, place.verify))
    except OSError as error:
        raise InvalidParameter(f"TLS cannot be spoken with the files in {place.certificates}: {error}") from error


def client_context(directory: Path, verify: bool) -> ssl.SSLContext:
    """TLS with the files that the docker client keeps in such a directory: ca.pem, cert.pem, key.pem."""

    context = trusting(str(directory / "ca.pem") if verify else None)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if (directory / "cert.pem").exists():
        context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    return context


async def _unix(path: str) -> Connection:
    try:
        return Connection(*await asyncio.open_unix_connection(path, limit=_PIECE))
    except OSError as error:
        raise unreached(f"unix://{path}", error) from error


async def _tcp(address: str, host: str, port: int, tls: ssl.SSLContext | None) -> Connection:
    try:
        reader, writer = await asyncio.open_connection(host, port, limit=_PIECE)
        if tls is None:
            return Connection(reader, writer)

        stream = Stream(reader, writer, tls, host)
        try:
            async with asyncio.timeout(_HANDSHAKE):
                await stream.shake_hands()
        except BaseException:
            writer.close()
            raise
        return Connection(stream, stream)
    except OSError as error:
        raise unreached(address, error) from error
