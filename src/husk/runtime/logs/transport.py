"""The way of packets to a receiver of logs: datagrams or a stream, over the network or a socket of this host."""

import asyncio
import contextlib
import errno
import os
import socket
import ssl

import msgspec

from husk.trust import trusting

_PATIENCE = 10.0


class Tls(msgspec.Struct, frozen=True):
    ca: str = ""
    certificate: str = ""
    key: str = ""
    verify: bool = True


class Address(msgspec.Struct, frozen=True):
    """`protocol` is udp, tcp, unix (a stream) or unixgram; the path of the latter two is `host`."""

    protocol: str
    host: str
    port: int = 0
    tls: Tls | None = None

    def __str__(self) -> str:
        return self.host if self.protocol.startswith("unix") else f"{self.host}:{self.port}"


class Connection:
    """An open way to a receiver. Every method raises OSError when the receiver cannot be reached."""

    def __init__(
        self,
        datagrams: socket.socket | None = None,
        stream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None,
    ) -> None:
        self._datagrams = datagrams
        self._stream = stream

    async def send(self, packet: bytes) -> None:
        if self._datagrams is not None:
            try:
                await asyncio.get_running_loop().sock_sendall(self._datagrams, packet)
            except ConnectionRefusedError:
                # An earlier datagram came back from the network. On this host it means that nobody is there.
                if self._datagrams.family == socket.AF_UNIX:
                    raise
        elif self._stream is not None:
            reader, writer = self._stream
            if reader.at_eof():
                raise BrokenPipeError(errno.EPIPE, "the receiver has closed the connection")
            writer.write(packet)
            async with asyncio.timeout(_PATIENCE):
                await writer.drain()

    async def expect(self, answer: bytes) -> None:
        """Wait for the receiver's word."""
        if self._stream is not None:
            try:
                async with asyncio.timeout(_PATIENCE):
                    got = await self._stream[0].readexactly(len(answer))
            except (TimeoutError, asyncio.IncompleteReadError):
                raise BrokenPipeError(errno.EPIPE, "the receiver did not acknowledge") from None
            if got != answer:
                raise BrokenPipeError(errno.EPIPE, "the receiver acknowledged something else")

    async def close(self) -> None:
        if self._datagrams is not None:
            self._datagrams.close()
        if self._stream is not None:
            self._stream[1].close()
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    await self._stream[1].wait_closed()


async def connect(address: Address) -> Connection:
    """Raises OSError when nobody is there, except for UDP, which cannot tell."""
    async with asyncio.timeout(_PATIENCE):
        if address.protocol.startswith("unix"):
            return await _connect_here(address)
        if address.protocol == "udp":
            return Connection(datagrams=await _udp(address))
        context = _context(address.tls) if address.tls else None
        return Connection(stream=await asyncio.open_connection(address.host, address.port, ssl=context))


async def _connect_here(address: Address) -> Connection:
    """The path tells what it is: connecting in the other way fails with EPROTOTYPE."""
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        channel.connect(address.host)
        return Connection(datagrams=channel)
    except OSError as error:
        channel.close()
        if error.errno != errno.EPROTOTYPE or address.protocol == "unixgram":
            raise
    return Connection(stream=await asyncio.open_unix_connection(address.host))


async def _udp(address: Address) -> socket.socket:
    loop = asyncio.get_running_loop()
    family, kind, protocol, _, where = (await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_DGRAM))[0]
    channel = socket.socket(family, kind | socket.SOCK_NONBLOCK, protocol)
    try:
        channel.connect(where)
    except BaseException:
        channel.close()
        raise
    return channel


def is_there(path: str) -> bool:
    """Return True if a socket, or anything else, is in this place of the host."""
    return os.path.exists(path)


def _context(tls: Tls) -> ssl.SSLContext:
    context = trusting(tls.ca or None)
    if tls.certificate:
        context.load_cert_chain(tls.certificate, tls.key or None)
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
