"""TLS between a client and the API: a tunnel speaks it, and hands the rest of the edge a Unix socket.

    client ──TLS── Tunnel ──socketpair── Connection, workers that read and write a socket themselves

The event loops' own TLS ends a connection when its client says that it sends no more. `echo hi | docker run -i` says
exactly that (`close_notify`) and then waits for the output; and the bodies of copies pass through worker processes,
which know sockets and no TLS. With a Unix socket behind it everything else is as it is for local clients:

    close_notify of the client  -> the Unix socket is half-closed: the end of input, output goes on
    the Unix socket half-closed -> close_notify to the client, which may go on sending for a while
    the TCP connection ends     -> the Unix socket is closed: the client has left
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, cast

from husk.aio.tasks import Tasks
from husk.api.http.channel import Channel
from husk.api.http.crowd import Crowd, place_of
from husk.config import TlsConfig
from husk.errors import InvalidParameter

log = logging.getLogger(__name__)

# Seconds that a client may take after we said our last word.
LINGER = 5.0
_PIECE = 1 << 16
_SHORT_NAMES = {
    "commonName": "CN",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
}


def server_context(settings: TlsConfig) -> ssl.SSLContext:
    """The certificate that we show and what we ask of clients. InvalidParameter names the file that is wrong."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    if not settings.cert or not settings.key:
        raise InvalidParameter(
            "invalid TLS configuration: there is no certificate to show: give --tlscert and --tlskey"
        )
    try:
        # Without this answer the ssl module would ask for a password on the terminal.
        context.load_cert_chain(settings.cert, settings.key, password=_no_password)
    except (OSError, ValueError) as error:
        raise InvalidParameter(
            f"invalid TLS configuration: could not load X509 key pair (cert: {str(settings.cert)!r}, "
            f"key: {str(settings.key)!r}): {_reason(error)}"
        ) from None
    if settings.verify:
        try:
            context.load_verify_locations(settings.ca)
        except (OSError, ValueError) as error:
            raise InvalidParameter(
                f"invalid TLS configuration: could not read CA certificate {str(settings.ca)!r}: {_reason(error)}"
            ) from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _no_password() -> str:
    raise ValueError("the key is encrypted; the daemon needs one that is not")


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def subject(certificate: Mapping[str, Any]) -> str:
    """Name the holder of a certificate, as `O=Example, CN=deploy`, from what the ssl module tells of it."""
    parts = [pair for group in certificate.get("subject", ()) for pair in group]
    return ", ".join(f"{_SHORT_NAMES.get(name, name)}={value}" for name, value in parts)


class Tunnels:
    """All connections of one TLS listener. `serve` is the protocol that gets the Unix socket of each."""

    def __init__(self, context: ssl.SSLContext, serve: Callable[[], asyncio.Protocol], crowd: Crowd) -> None:
        self._context = context
        self._serve = serve
        self.limits = crowd.limits
        self._crowd = crowd  # counts clients by their address, which their Unix sockets do not tell
        self._open: set[TlsTunnel] = set()
        self._strangers: dict[TlsTunnel, str] = {}  # where they come from, the oldest first
        self.tasks = Tasks()

    def __call__(self) -> "TlsTunnel":
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        return TlsTunnel(self, self._context.wrap_bio(incoming, outgoing, server_side=True), incoming, outgoing)

    def begun(self, tunnel: "TlsTunnel", peer: str) -> bool:
        """Count one more tunnel; False if the crowd has no room. Among strangers there always is room: the oldest of
        the address that most come from goes. Clients show who they are at once: who has been silent for the longest is
        the least of a loss."""
        if not self._crowd.welcome(tunnel, peer):
            return False
        place = place_of(peer)
        if (leaving := self._too_many(place)) is not None:
            log.warning(
                "a TLS client at %s was turned away: it has not finished its handshake", self._strangers[leaving]
            )
            self.known(leaving)
            leaving.abort()
        self._strangers[tunnel] = place
        self._open.add(tunnel)
        return True

    def _too_many(self, place: str) -> "TlsTunnel | None":
        counts = Counter(self._strangers.values())
        if counts[place] < self.limits.peer_strangers:
            if len(self._strangers) < self.limits.strangers:
                return None
            place = max(counts, key=lambda each: counts[each])
        return next(tunnel for tunnel, of in self._strangers.items() if of == place)

    def known(self, tunnel: "TlsTunnel") -> None:
        """The handshake of one of them is over, well or not. Safe to call twice."""
        self._strangers.pop(tunnel, None)

    def ended(self, tunnel: "TlsTunnel") -> None:
        self._open.discard(tunnel)
        self._crowd.farewell(tunnel)

    async def connect(self, protocol: asyncio.Protocol, tunnel: "TlsTunnel", client: Mapping[str, str]) -> None:
        """Let the edge serve one end of a new pair of sockets, and `protocol` have the other; `client` is who it is."""

        def served() -> asyncio.Protocol:
            made = self._serve()
            if isinstance(made, Channel):
                made.behind = client
                tunnel.served = made
            return made

        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            await loop.create_unix_connection(lambda: protocol, sock=ours)
        except BaseException:
            ours.close()
            theirs.close()
            raise
        try:
            await loop.connect_accepted_socket(served, theirs)
        except BaseException:
            theirs.close()
            raise

    async def close(self) -> None:
        """Abort all tunnels: clients whose connections the edge has closed were told; nobody waits for the rest."""
        await self.tasks.cancel_all()
        for tunnel in list(self._open):
            tunnel.abort()


class TlsTunnel(asyncio.Protocol):
    """The client's end of one connection."""

    def __init__(self, owner: Tunnels, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> None:
        self._owner = owner
        self._tls = tls
        self._incoming = incoming
        self._outgoing = outgoing
        self._transport: asyncio.Transport | None = None
        self._inner: asyncio.Transport | None = None
        self._peer = ""
        self._stranger = False
        self._input_ended = False
        self._timer: asyncio.TimerHandle | None = None
        self._client_slow = False
        # The edge's end, when there is one.
        self.served: Channel | None = None

    @property
    def waiting(self) -> bool:
        """True while we wait for the client, for its handshake, a request or the rest of one."""
        return self.served is None or self.served.waiting

    # what the client does

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._peer = str((transport.get_extra_info("peername") or ("",))[0])
        if not self._owner.begun(self, self._peer):
            self._transport.abort()
            return
        self._stranger = True
        self._limit(self._owner.limits.handshake_time)

    def data_received(self, data: bytes) -> None:
        self._incoming.write(data)
        try:
            if self._stranger:
                self._shake_hands()
            elif self._inner is not None:
                self._pass_in()
        except ssl.SSLError as error:
            self._refuse(error)

    def eof_received(self) -> bool:
        # A TLS client that merely sends no more says so inside TLS: this one has left.
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._forget_limit()
        self._known()
        self._owner.ended(self)
        if self._inner is not None:
            self._inner.close()

    def pause_writing(self) -> None:
        self._client_slow = True
        if self._inner is not None:
            self._inner.pause_reading()

    def resume_writing(self) -> None:
        self._client_slow = False
        if self._inner is not None:
            self._inner.resume_reading()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._send()
            return
        self._forget_limit()
        self._known()
        self._send()
        assert self._transport is not None
        self._transport.pause_reading()
        self._owner.tasks.spawn(self._connect(), "tls connection")

    async def _connect(self) -> None:
        try:
            await self._owner.connect(_Inner(self), self, self._client())
        except OSError as error:
            log.warning("a TLS client cannot be served: %s", error)
            self.abort()

    def _client(self) -> dict[str, str]:
        """Describe the client: its address, and the subject of the certificate that it has shown, if any."""
        shown = self._tls.getpeercert()
        return {"address": self._peer, **({"certificate": subject(shown)} if shown else {})}

    def _refuse(self, error: ssl.SSLError) -> None:
        """The client hears why (an alert was written), the log too."""
        log.info("TLS client %s refused: %s", self._peer, error.reason or error)
        self._send()
        if self._transport is not None:
            self._transport.close()

    def _pass_in(self) -> None:
        """Everything that is complete goes to the edge."""
        assert self._inner is not None
        while not self._input_ended:
            try:
                data = self._tls.read(_PIECE)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                data = b""
            if data:
                self._inner.write(data)
            else:
                self._input_ended = True
                if not self._inner.is_closing() and self._inner.can_write_eof():
                    self._inner.write_eof()
        self._send()  # reading may have to answer, as to an update of keys

    def _send(self) -> None:
        if self._transport is not None and not self._transport.is_closing() and (data := self._outgoing.read()):
            self._transport.write(data)

    def _limit(self, seconds: float) -> None:
        self._forget_limit()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.abort)

    def _forget_limit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _known(self) -> None:
        if self._stranger:
            self._stranger = False
            self._owner.known(self)

    # what the edge does

    def opened(self, inner: asyncio.Transport) -> None:
        self._inner = inner
        if self._transport is None:
            inner.close()
            return
        if self._client_slow:
            inner.pause_reading()
        self._transport.resume_reading()
        try:
            self._pass_in()
        except ssl.SSLError as error:
            self._refuse(error)

    def pass_out(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[self._tls.write(left) :]
        except ssl.SSLError as error:
            log.debug("TLS: %s", error)
            self.abort()
            return
        self._send()

    def output_ended(self) -> None:
        """The edge says no more on this connection; it may still want to hear."""
        with contextlib.suppress(ssl.SSLError, ValueError):
            self._tls.unwrap()  # our own word is written, and the client's, which this also wants, may come later
        self._send()
        self._limit(LINGER)

    def closed(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()
            self._limit(LINGER)

    def hold_client(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def let_client_go_on(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()


class _Inner(asyncio.Protocol):
    """Our end of the Unix socket behind a tunnel."""

    def __init__(self, tunnel: TlsTunnel) -> None:
        self._tunnel = tunnel

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._tunnel.opened(cast("asyncio.Transport", transport))

    def data_received(self, data: bytes) -> None:
        self._tunnel.pass_out(data)

    def eof_received(self) -> bool:
        self._tunnel.output_ended()
        return True

    def pause_writing(self) -> None:
        self._tunnel.hold_client()

    def resume_writing(self) -> None:
        self._tunnel.let_client_go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self._tunnel.closed()
