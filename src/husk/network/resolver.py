"""Answers a container's questions for names: one resolver per container, inside its sandbox.

Docker's address for it is 127.0.0.11, port 53. The sockets are made in the sandbox by a thread and served by the
daemon's loop, so that nothing has to be routed or let through, and the daemon knows who asks. They are on other ports,
with a rule in the sandbox that leads port 53 to them: a container may want port 53 for itself.

What the daemon does not know is asked of other servers, from the host's own network, over the protocol that the
container used.
"""

import asyncio
import contextlib
import errno
import logging
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from husk.aio.tasks import Tasks
from husk.errors import SystemFault
from husk.kernel import namespaces
from husk.kernel.nftables import Nftables
from husk.network import dns
from husk.network.acceptor import Acceptor, Quota, reserved

log = logging.getLogger(__name__)

ADDRESS = "127.0.0.11"
_PORT = 53

# Clients give up after five seconds: a second server should have been asked by then.
_PATIENCE = 2.0
_MOST_SERVERS = 3
_IDLE = 10.0
# Bytes of a question over TCP, and of what is read ahead there: nobody needs more, and those who ask may be many.
_LONGEST_QUESTION = 1 << 12
# A conversation over TCP, and what it asks of others.
_COST = 2
# Questions that are read in one go.
_AT_ONCE = 8
_LARGEST = 1 << 16
# Messages that a server may send before its answer, and that are none. Who sends more is guessing, or holds the loop.
_MOST_FALSE = 16
# Seconds of the daemon's processor that one container's questions may take: so many at once, this part of the time.
# What a question for others costs is spread over many turns.
_ALLOWANCE, _SHARE = 0.02, 0.2
_OF_OTHERS = 0.0003

_RULES = """\
add table ip husk-names
flush table ip husk-names
add chain ip husk-names output {{ type nat hook output priority -100; policy accept; }}
add rule ip husk-names output ip daddr {address} udp dport {port} dnat to {address}:{udp}
add rule ip husk-names output ip daddr {address} tcp dport {port} dnat to {address}:{tcp}
"""

# The response to a question the daemon can answer itself, None for one that others must answer.
Answer = Callable[[dns.DnsQuery], bytes | None]
# The servers to ask, best first; none for a container that may not ask anybody.
Servers = Callable[[], Sequence[str]]
Ask = Callable[[tuple[str, int], dns.DnsQuery, bytes], Awaitable[bytes]]
# For datagrams, and a listener.
Sockets = tuple[socket.socket, socket.socket]


class Budget:
    """Time that comes back as fast as its share of all time, up to the allowance."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left = _ALLOWANCE
        self._seen = clock()

    def spend(self, seconds: float) -> None:
        now = self._clock()
        self._left = min(self._left + (now - self._seen) * _SHARE, _ALLOWANCE) - seconds
        self._seen = now

    def pause(self) -> float:
        """Seconds until a quarter of the allowance is there, where nothing is left; 0 otherwise."""
        self.spend(0)
        return (_ALLOWANCE / 4 - self._left) / _SHARE if self._left <= 0 else 0.0


class Resolver:
    def __init__(
        self,
        answer: Answer,
        servers: Servers,
        quota: Quota,
        who: str,
        idle: float = _IDLE,
        budget: Budget | None = None,
        port: int = _PORT,
        sockets: Callable[[str], Sockets] | None = None,
    ) -> None:
        """Charge descriptors to `who` of the quota: a container that asks much must not fill the daemon. Other servers
        are asked at this `port`; `sockets` opens those where questions arrive in a sandbox."""
        self._port = port
        self._sockets = sockets or _sockets
        self._answer = answer
        self._servers = servers
        self._quota = quota
        self._who = who
        self._idle = idle
        self._tasks = Tasks()
        self._datagrams: socket.socket | None = None
        self._budget = budget or Budget()
        self._resting: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener: socket.socket | None = None
        self._door: Acceptor | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._closed = False

    async def open(self, sandbox_path: str) -> None:
        try:
            datagrams, listener = await asyncio.to_thread(self._sockets, sandbox_path)
        except OSError as error:
            raise SystemFault(f"names cannot be resolved in {sandbox_path}: {error}") from error
        self.serve(datagrams, listener)

    def serve(self, datagrams: socket.socket, listener: socket.socket) -> None:
        """Answer what comes at these sockets, which are the resolver's from now on. A container may end while they are
        made: they would keep its sandbox."""
        if self._closed:
            datagrams.close()
            listener.close()
            return
        self._datagrams, self._listener = datagrams, listener
        self._loop = asyncio.get_running_loop()
        try:
            self._listen()
            self._door = Acceptor(listener, self._converse, self._tasks, self._quota, self._who, _COST)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Nothing in the sandbox is ours any more afterwards. Safe to call twice, and before the sockets are there."""
        self._closed = True
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None
        if self._datagrams is not None:
            assert self._loop is not None
            self._loop.remove_reader(self._datagrams.fileno())
            self._datagrams.close()
            self._datagrams = None
        if self._door is not None:
            self._door.close()
            self._door = None
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for writer in list(self._writers):
            writer.close()

    def _listen(self) -> None:
        """Read questions, unless they have taken their share: then they wait in the socket, and are lost where it is
        full, as with any resolver."""
        if self._datagrams is None:
            return
        loop = asyncio.get_running_loop()
        if pause := self._budget.pause():
            loop.remove_reader(self._datagrams.fileno())
            self._resting = loop.call_later(pause, self._listen)
        else:
            self._resting = None
            loop.add_reader(self._datagrams.fileno(), self._read)

    def _read(self) -> None:
        begun = time.thread_time()
        try:
            for _ in range(_AT_ONCE):
                if self._datagrams is None:
                    return
                try:
                    self.receive(*self._datagrams.recvfrom(_LARGEST))
                except OSError:  # no more is there; or nobody listens any more where an answer went
                    break
        finally:
            self._budget.spend(time.thread_time() - begun)
        if self._budget.pause():
            self._listen()

    def receive(self, data: bytes, sender: tuple[str, int]) -> None:
        """A question over UDP."""
        try:
            query = dns.parse(data)
        except dns.MalformedQuestion:
            self._send(dns.refusal(data), sender)
            return
        response = self._answer(query)
        if response is not None:
            self._send(dns.fit(query, response), sender)
        elif not self._quota.take(self._who):
            self._send(dns.failure(query, dns.SERVER_FAILURE), sender)
        else:
            self._budget.spend(_OF_OTHERS)
            self._tasks.spawn(self._forward_datagram(query, data, sender), "forward a question for a name")

    async def _forward_datagram(self, query: dns.DnsQuery, data: bytes, sender: tuple[str, int]) -> None:
        try:
            response = await self._forward(query, data, _ask_by_datagram)
        finally:
            self._quota.give_back(self._who)
        self._send(dns.fit(query, response), sender)

    async def _forward(self, query: dns.DnsQuery, data: bytes, ask: Ask) -> bytes:
        """The answer of the first server that has one; the last failure when none has."""
        failure = dns.failure(query, dns.SERVER_FAILURE)
        for server in self._servers()[:_MOST_SERVERS]:
            try:
                async with asyncio.timeout(_PATIENCE):
                    response = await ask((server, self._port), query, data)
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                log.debug("DNS server %s: %r", server, error)
                continue
            if dns.code(response) not in (dns.SERVER_FAILURE, dns.REFUSED, dns.NOT_IMPLEMENTED):
                return response
            failure = response
        return failure

    def _send(self, response: bytes | None, sender: tuple[str, int]) -> None:
        if response is not None and self._datagrams is not None:
            with contextlib.suppress(OSError):  # no room for it, or nobody there
                self._datagrams.sendto(response, sender)

    async def _converse(self, connection: socket.socket) -> None:
        """Questions over TCP, one after the other. Who neither asks nor reads is not waited for."""
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _LONGEST_QUESTION)
        reader, writer = await asyncio.open_connection(sock=connection, limit=_LONGEST_QUESTION)
        # One answer is out before the next question is read.
        writer.transport.set_write_buffer_limits(high=0)
        self._writers.add(writer)
        try:
            while not self._closed:
                async with asyncio.timeout(self._idle):
                    length = int.from_bytes(await reader.readexactly(2))
                    if length > _LONGEST_QUESTION:
                        return
                    data = await reader.readexactly(length)
                self._budget.spend(_OF_OTHERS)
                await asyncio.sleep(self._budget.pause())
                response = await self._reply(data)
                if response is None:
                    return
                writer.write(len(response).to_bytes(2) + response)
                async with asyncio.timeout(self._idle):
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            return
        finally:
            self._writers.discard(writer)
            # What was not read by now never will be.
            writer.transport.abort()

    async def _reply(self, data: bytes) -> bytes | None:
        try:
            query = dns.parse(data)
        except dns.MalformedQuestion:
            return dns.refusal(data)
        return self._answer(query) or await self._forward(query, data, _ask_by_stream)


async def _ask_by_datagram(server: tuple[str, int], query: dns.DnsQuery, data: bytes) -> bytes:
    loop = asyncio.get_running_loop()
    # A port of its own for each question: who does not see the question cannot guess where to send a false answer.
    with _socket(server[0], socket.SOCK_DGRAM) as channel:
        if reserved(channel.fileno()):
            raise OSError(errno.EMFILE, "too many descriptors are open")
        channel.connect(server)
        await loop.sock_sendall(channel, data)
        for _ in range(_MOST_FALSE):
            if dns.answers(query, response := await loop.sock_recv(channel, _LARGEST)):
                return response
    raise _false()


async def _ask_by_stream(server: tuple[str, int], query: dns.DnsQuery, data: bytes) -> bytes:
    loop = asyncio.get_running_loop()
    channel = _socket(server[0], socket.SOCK_STREAM)
    try:
        await loop.sock_connect(channel, server)
        reader, writer = await asyncio.open_connection(sock=channel)
    except BaseException:
        channel.close()
        raise
    try:
        writer.write(len(data).to_bytes(2) + data)
        for _ in range(_MOST_FALSE):
            response = await reader.readexactly(int.from_bytes(await reader.readexactly(2)))
            if dns.answers(query, response):
                return response
    finally:
        # What it still sends is for nobody.
        writer.transport.abort()
    raise _false()


def _false() -> OSError:
    return OSError(errno.EBADMSG, f"{_MOST_FALSE} messages that do not answer the question")


def _socket(server: str, kind: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    return socket.socket(family, kind | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)


def _sockets(sandbox_path: str) -> tuple[socket.socket, socket.socket]:
    """Open the sockets where the questions arrive, and write the rules that bring them there."""

    def make() -> tuple[socket.socket, socket.socket]:
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            for channel in (datagrams, listener):
                channel.bind((ADDRESS, 0))
            listener.listen(64)
            rules = _RULES.format(
                address=ADDRESS, port=_PORT, udp=datagrams.getsockname()[1], tcp=listener.getsockname()[1]
            )
            Nftables().run(rules)
        except BaseException:
            datagrams.close()
            listener.close()
            raise
        return datagrams, listener

    return namespaces.run_inside(Path(sandbox_path), make)
