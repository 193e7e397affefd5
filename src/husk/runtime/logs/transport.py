"""The way of packets to a receiver of logs: datagrams or a stream, over the network or a socket of this host.

Sockets and certificates are paths of the host that a client has named. Whatever is there may be no file, or lie on a
file system that never answers: they are opened by `touch`, which asks elsewhere and with a deadline.
"""

import asyncio
import contextlib
import errno
import os
import socket
import ssl
import stat
from collections.abc import Callable, Iterator
from functools import partial
from typing import NoReturn, Protocol, TypeVar

import msgspec

from husk.trust import trusting

T = TypeVar("T")

_PATIENCE = 10.0
# Of a file with certificates or a key.
_LARGEST_FILE = 1 << 20


class Touch(Protocol):
    async def __call__(self, path: str, work: Callable[[], T]) -> T:
        """Run what asks for a path. Unavailable when nothing answers there in time."""
        ...


class Tls(msgspec.Struct, frozen=True):
    ca: str = ""
    certificate: str = ""
    key: str = ""
    verify: bool = True


class ReceiverAddress(msgspec.Struct, frozen=True):
    """`protocol` is udp, tcp, unix (a stream) or unixgram; the path of the latter two is `host`."""

    protocol: str
    host: str
    port: int = 0
    tls: Tls | None = None

    def __str__(self) -> str:
        return self.host if self.protocol.startswith("unix") else f"{self.host}:{self.port}"


class ReceiverConnection:
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


async def connect(address: ReceiverAddress, touch: Touch) -> ReceiverConnection:
    """Raises OSError when nobody is there, except for UDP, which cannot tell."""
    if address.protocol.startswith("unix"):
        return await _connect_here(address, touch)
    context = await _context(address.tls, touch) if address.tls else None
    async with asyncio.timeout(_PATIENCE):
        if address.protocol == "udp":
            return ReceiverConnection(datagrams=await _udp(address))
        return ReceiverConnection(stream=await asyncio.open_connection(address.host, address.port, ssl=context))


async def _connect_here(address: ReceiverAddress, touch: Touch) -> ReceiverConnection:
    kinds = [socket.SOCK_DGRAM] if address.protocol == "unixgram" else [socket.SOCK_DGRAM, socket.SOCK_STREAM]
    channel = await touch(address.host, partial(_connected, address.host, kinds))
    if channel.type == socket.SOCK_DGRAM:
        return ReceiverConnection(datagrams=channel)
    try:
        return ReceiverConnection(stream=await asyncio.open_unix_connection(sock=channel))
    except BaseException:
        channel.close()
        raise


def _connected(path: str, kinds: list[socket.SocketKind]) -> socket.socket:
    """A socket of the first of those kinds that the one there is of: in another way it fails with EPROTOTYPE."""
    for kind in kinds:
        channel = socket.socket(socket.AF_UNIX, kind | socket.SOCK_NONBLOCK)
        try:
            channel.connect(path)
        except OSError as error:
            channel.close()
            if error.errno != errno.EPROTOTYPE or kind == kinds[-1]:
                raise
        else:
            return channel
    raise AssertionError("there are kinds")


async def _udp(address: ReceiverAddress) -> socket.socket:
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


async def _context(tls: Tls, touch: Touch) -> ssl.SSLContext:
    files = {path: await touch(path, partial(_content, path)) for path in (tls.ca, tls.certificate, tls.key) if path}
    return await asyncio.to_thread(_made, tls, files)


def _made(tls: Tls, files: dict[str, bytes]) -> ssl.SSLContext:
    """A context of what was read. The ssl module reads certificates from files alone, so they are some of our own."""
    with contextlib.ExitStack() as stack:
        ours = {path: stack.enter_context(_in_memory(data)) for path, data in files.items()}
        context = trusting(ours.get(tls.ca))
        if tls.certificate:
            # Without this answer it would ask for a password on the terminal.
            context.load_cert_chain(ours[tls.certificate], ours.get(tls.key), password=_no_password)
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


@contextlib.contextmanager
def _in_memory(data: bytes) -> Iterator[str]:
    """The path of a file of our own with that in it."""
    file = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(file, data)
        yield f"/proc/self/fd/{file}"
    finally:
        os.close(file)


def _no_password() -> NoReturn:
    raise OSError(errno.EINVAL, "the key is encrypted, one that is not is needed")


def _content(path: str) -> bytes:
    """Read a plain file, and nothing else: a pipe would be waited for, and a device may have no end."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, f"{path} is no regular file")
        data = file.read(_LARGEST_FILE + 1)
    if len(data) > _LARGEST_FILE:
        raise OSError(errno.EFBIG, f"{path} has more than {_LARGEST_FILE} bytes")
    return data
