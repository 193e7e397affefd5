"""Passes connections from IPv6 on to containers with IPv4 alone, and the other way round.

Also what is sent to ::1 goes this way, which the kernel does not let rules lead elsewhere. It is what dockerd has a
proxy process for; unlike rules it needs the daemon, and the container sees the host's address on the bridge.
"""

import asyncio
import contextlib
import errno
import logging
import socket
import struct
from collections.abc import Callable, Iterable

from msgspec import Struct

from husk.aio.tasks import Tasks
from husk.network.acceptor import Acceptor, Quota, reserved
from husk.network.ports import PublishedPort

log = logging.getLogger(__name__)

Key = tuple[str, str, int]

_PIECE = 1 << 16
_CONNECT_SECONDS = 10.0
# Both ends of a connection.
_COST = 2
# Of all descriptors of the daemon a quarter, at most so many; for each port a quarter of that.
_PART, _MOST, _EACH_PART = 4, 8192, 4
# How long a connection over which nothing comes or goes is kept.
_IDLE_CONNECTION_SECONDS = 3600.0
# How long the answers to a UDP client are waited for; that of conntrack for a conversation.
_IDLE_SECONDS = 120.0

# Linux's number, which Python's socket module lacks before 3.14; interface, address of ours, address in the packet.
_IP_PKTINFO = 8
_PKTINFO = struct.Struct("=i4s4s")
_PKTINFO_6 = struct.Struct("=16si")
_ROOM = socket.CMSG_SPACE(_PKTINFO_6.size)


class Relay:
    """Held sockets that no rule stands before, served on the running loop."""

    def __init__(self, quota: Quota | None = None, idle: float = _IDLE_CONNECTION_SECONDS) -> None:
        self._quota = quota or Quota.share(_PART, _MOST, _EACH_PART)
        self._idle = idle
        self._ports: dict[Key, PublishedPort] = {}
        self._held: dict[Key, socket.socket] = {}
        self._acceptors: dict[Key, Acceptor] = {}
        self._tasks = Tasks()
        self._clients: dict[_Caller, _Client] = {}
        self._conversations: dict[asyncio.Task[object], PublishedPort] = {}

    def serve(self, port: PublishedPort, held: socket.socket) -> None:
        """Pass on what comes to a held socket. What went elsewhere until now is cut off: another container may have
        that address by now."""
        former = self._ports.get(port.key)
        self._ports[port.key] = port
        if port.key in self._held:
            if former != port:
                self._forget_clients(port.key)
                for conversation in [task for task, led in self._conversations.items() if led == former]:
                    conversation.cancel()
            return
        self._held[port.key] = held
        key = port.key
        if port.protocol == "tcp":
            self._acceptors[key] = Acceptor(held, lambda c: self._pass_on(c, key), self._tasks, self._quota, key, _COST)
        else:
            _tell_where_asked(held)
            asyncio.get_running_loop().add_reader(held.fileno(), self._receive, key, held)

    def stop(self, port: PublishedPort) -> None:
        """Take no more; connections that are under way go on. Nothing happens when the port is not served."""
        if (held := self._held.pop(port.key, None)) is not None:
            del self._ports[port.key]
            if (acceptor := self._acceptors.pop(port.key, None)) is not None:
                acceptor.close()
            else:
                asyncio.get_running_loop().remove_reader(held.fileno())
            self._forget_clients(port.key)

    async def close(self) -> None:
        await self._tasks.cancel_all()

    def _forget_clients(self, key: Key) -> None:
        for client in [client for caller, client in self._clients.items() if caller.key == key]:
            client.close()

    # --- TCP

    async def _pass_on(self, connection: socket.socket, key: Key) -> None:
        if (port := self._ports.get(key)) is None:
            return
        task = asyncio.current_task()
        assert task is not None
        self._conversations[task] = port
        try:
            await self._lead(connection, port)
        except (OSError, TimeoutError) as error:
            log.debug("TCP port %d: %r", key[2], error)
        finally:
            del self._conversations[task]

    async def _lead(self, connection: socket.socket, port: PublishedPort) -> None:
        async with asyncio.timeout(_CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(*_target(port))
        try:
            # The port may have been given back meanwhile, and the address with it.
            if self._ports.get(port.key) != port:
                return
            near, far = await asyncio.open_connection(sock=connection)
            try:
                await self._converse((near, writer), (reader, far))
            finally:
                far.close()
        finally:
            writer.close()

    async def _converse(self, *ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        """Until both ways have ended, or nothing has come or gone for long."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._idle) as patience:

            def moved() -> None:
                patience.reschedule(loop.time() + self._idle)

            try:
                await asyncio.gather(*(_pump(reader, writer, moved) for reader, writer in ways))
            except BaseException:
                for _, writer in ways:
                    # What one side has not read, the other will not wait for.
                    writer.transport.abort()
                raise

    # --- UDP

    def _receive(self, key: Key, held: socket.socket) -> None:
        for _ in range(64):
            try:
                data, ancillary, _, sender = held.recvmsg(_PIECE, _ROOM)
            except OSError:
                return
            caller = _Caller(key, sender, _asked(ancillary))
            client = self._clients.get(caller)
            if client is None:
                if not self._quota.take(key):
                    continue
                try:
                    client = _Client(self._clients, self._quota, caller, held, _target(self._ports[key]))
                except OSError as error:
                    self._quota.give_back(key)
                    log.debug("UDP port %d: %s", key[2], error)
                    continue
            client.send(data)


class _Caller(Struct, frozen=True):
    """The sender of a question, and the host's address that was asked: the answer has to come from there."""

    key: Key
    sender: tuple[object, ...]
    asked: tuple[tuple[int, int, bytes], ...]


def _target(port: PublishedPort) -> tuple[str, int]:
    return port.container_ip, port.container_port


def _tell_where_asked(held: socket.socket) -> None:
    if held.family == socket.AF_INET6:
        held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    else:
        held.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)


def _asked(ancillary: Iterable[tuple[int, int, bytes]]) -> tuple[tuple[int, int, bytes], ...]:
    """Make the ancillary data of an answer, which name the address that was asked, from those of the question."""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.IPPROTO_IP, _IP_PKTINFO):
            _, local, _ = _PKTINFO.unpack_from(data)
            return ((level, kind, _PKTINFO.pack(0, local, bytes(4))),)
        if (level, kind) == (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO):
            address, _ = _PKTINFO_6.unpack_from(data)
            # The number of the interface is part of a link-local sender's address.
            return ((level, kind, _PKTINFO_6.pack(address, 0)),)
    return ()


class _Client:
    """One UDP client of one port, with a socket of its own toward the container."""

    def __init__(
        self,
        clients: "dict[_Caller, _Client]",
        quota: Quota,
        caller: _Caller,
        held: socket.socket,
        target: tuple[str, int],
    ) -> None:
        self._clients, self._quota, self._caller, self._held = clients, quota, caller, held
        family = socket.AF_INET6 if ":" in target[0] else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        try:
            if reserved(self._socket.fileno()):
                raise OSError(errno.EMFILE, "too many descriptors are open")
            self._socket.connect(target)
        except OSError:
            self._socket.close()
            raise
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket.fileno(), self._answered)
        self._ending = self._loop.call_later(_IDLE_SECONDS, self.close)
        clients[caller] = self

    def send(self, data: bytes) -> None:
        self._ending.cancel()
        self._ending = self._loop.call_later(_IDLE_SECONDS, self.close)
        # As on any network: what cannot be sent is lost.
        with contextlib.suppress(OSError):
            self._socket.send(data)

    def _answered(self) -> None:
        with contextlib.suppress(OSError):
            self._held.sendmsg([self._socket.recv(_PIECE)], self._caller.asked, 0, self._caller.sender)

    def close(self) -> None:
        if self._clients.pop(self._caller, None) is not None:
            self._ending.cancel()
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()
            self._quota.give_back(self._caller.key)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, moved: Callable[[], None]) -> None:
    """Bytes one way until their end, which is passed on too."""
    while data := await reader.read(_PIECE):
        moved()
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
