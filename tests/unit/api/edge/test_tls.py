"""The tunnel between TLS and the edge: ends of input and output are told apart from ends of connections."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from cryptography.hazmat.primitives import serialization

from husk.api.edge import tls
from husk.api.edge.server import ApiEdge, serve
from husk.api.edge.tls import server_context
from husk.api.http.crowd import Crowd
from husk.api.http.limits import HttpLimits
from husk.config import TlsConfig
from husk.errors import InvalidParameter
from tests.support.certificates import Authority, Pair
from tests.unit.api.fake_engine import FakeEngine
from tests.unit.api.loops import on_both_loops, until

if TYPE_CHECKING:
    from husk.composition import Engine


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def server(authority: Authority) -> Pair:
    return authority.issue("server", addresses=["127.0.0.1"])


@pytest.fixture
def client(authority: Authority) -> Pair:
    return authority.issue("client")


def settings(pair: Pair, verify: bool = True) -> TlsConfig:
    return TlsConfig(verify, Path(pair.ca), Path(pair.cert), Path(pair.key))


class Peer:
    """A client that half-closes inside TLS, which asyncio's own cannot."""

    def __init__(self, pair: Pair | None, ca: str) -> None:
        context = ssl.create_default_context(cafile=ca)
        if pair is not None:
            context.load_cert_chain(pair.cert, pair.key)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="127.0.0.1")

    async def connect(self, port: int) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self._exchange()
        self.flush()

    async def _exchange(self) -> None:
        self.flush()
        data = await self.reader.read(65536)
        self._incoming.write(data)
        if not data:
            self._incoming.write_eof()

    def flush(self) -> None:
        if data := self._outgoing.read():
            self.writer.write(data)

    def write(self, data: bytes) -> None:
        self._tls.write(data)
        self.flush()

    def end_input(self) -> None:
        with contextlib.suppress(ssl.SSLError):
            self._tls.unwrap()
        self.flush()

    async def read(self) -> bytes:
        """All until the server says that it sends no more."""
        found = b""
        while True:
            try:
                if not (data := self._tls.read(65536)):
                    return found
                found += data
            except ssl.SSLZeroReturnError:
                return found
            except ssl.SSLWantReadError:
                await self._exchange()


@contextlib.asynccontextmanager
async def serving(
    engine: FakeEngine, pair: Pair, verify: bool = True, limits: HttpLimits | None = None
) -> AsyncIterator[int]:
    app = ApiEdge(cast("Engine", engine), limits=limits)
    async with asyncio.timeout(20):
        async with serve(app, ["tcp://127.0.0.1:0"], "", server_context(settings(pair, verify))) as addresses:
            yield int(addresses[0].rpartition(":")[2])


@on_both_loops
async def test_a_client_that_sends_no_more_gets_its_answer(engine: FakeEngine, server: Pair, client: Pair) -> None:
    async with serving(engine, server) as port:
        peer = Peer(client, server.ca)
        await peer.connect(port)
        peer.write(b"GET /_ping HTTP/1.1\r\nHost: x\r\n\r\n")
        peer.end_input()
        assert (await peer.read()).endswith(b"\r\n\r\nOK")
        peer.writer.close()


@on_both_loops
async def test_a_client_that_leaves_is_noticed(engine: FakeEngine, server: Pair, client: Pair) -> None:
    async with serving(engine, server) as port:
        peer = Peer(client, server.ca)
        await peer.connect(port)
        peer.write(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
        await until(lambda: engine.events.listeners == 1)
        peer.writer.close()
        await until(lambda: not engine.events.listeners)


@on_both_loops
async def test_without_a_certificate_there_is_an_alert_and_no_answer(engine: FakeEngine, server: Pair) -> None:
    async with serving(engine, server) as port:
        peer = Peer(None, server.ca)
        await peer.connect(port)
        peer.write(b"GET /_ping HTTP/1.1\r\nHost: x\r\n\r\n")
        with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
            await peer.read()
        peer.writer.close()


@on_both_loops
async def test_without_verification_nobody_needs_one(engine: FakeEngine, server: Pair) -> None:
    async with serving(engine, server, verify=False) as port:
        peer = Peer(None, server.ca)
        await peer.connect(port)
        peer.write(b"GET /_ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b"200 OK" in await peer.read()
        peer.writer.close()


@on_both_loops
async def test_idle_ones_make_room_where_they_shall(engine: FakeEngine, server: Pair, client: Pair) -> None:
    ping = b"GET /_ping HTTP/1.1\r\nHost: x\r\n\r\n"
    limits = HttpLimits(remote_connections=9, peer_connections=2, makes_room=True)
    async with serving(engine, server, limits=limits) as port:
        peers = [Peer(client, server.ca) for _ in range(3)]
        for peer in peers:
            await peer.connect(port)
        # Idle since its handshake: it is hung up on.
        with contextlib.suppress(ConnectionResetError):
            await peers[0].reader.read()
        for peer in peers[1:]:
            peer.write(ping)
            peer.end_input()
            assert (await peer.read()).endswith(b"OK")
        for peer in peers:
            peer.writer.close()


async def test_strangers_do_not_stay(engine: FakeEngine, server: Pair, client: Pair) -> None:
    async with serving(engine, server, limits=HttpLimits(handshake_time=0.2)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()


async def test_strangers_are_few_and_shut_nobody_out(engine: FakeEngine, server: Pair, client: Pair) -> None:
    limits = HttpLimits(strangers=8, peer_strangers=3, handshake_time=1000.0)
    async with serving(engine, server, limits=limits) as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
        # From the same address, and served: the oldest of it go.
        peer = Peer(client, server.ca)
        await peer.connect(port)
        peer.write(b"GET /_ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b"200 OK" in await peer.read()
        peer.writer.close()
        for reader, _ in silent[:3]:
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
        for reader, writer in silent:
            assert writer is silent[-1][1] or writer is silent[-2][1] or reader.at_eof() or reader.exception()
            writer.close()


def test_the_greediest_address_makes_room() -> None:
    class Stranger:
        aborted = False

        def abort(self) -> None:
            self.aborted = True

    def come(peer: str) -> Stranger:
        stranger = Stranger()
        assert tunnels.begun(cast(tls.TlsTunnel, stranger), peer)
        return stranger

    limits = HttpLimits()
    tunnels = tls.Tunnels(cast(ssl.SSLContext, None), asyncio.Protocol, Crowd(limits))
    others = [come(f"192.0.2.{number}") for number in range(limits.strangers - limits.peer_strangers)]
    greedy = [come(f"2001:db8::{number:x}") for number in range(limits.peer_strangers)]  # one network, one owner
    later = come("198.51.100.1")
    assert greedy[0].aborted and not greedy[1].aborted and not later.aborted
    assert not any(one.aborted for one in others)
    again = come("2001:db8::ffff")
    assert not again.aborted and greedy[1].aborted and not greedy[2].aborted and not later.aborted
    tunnels.known(cast(tls.TlsTunnel, later))
    tunnels.known(cast(tls.TlsTunnel, later))


def test_files_that_cannot_be_used_are_named(server: Pair, authority: Authority, tmp_path: Path) -> None:
    other = authority.issue("other", addresses=["127.0.0.1"])
    with pytest.raises(InvalidParameter, match=r"could not load X509 key pair .*KEY_VALUES_MISMATCH"):
        server_context(TlsConfig(True, Path(server.ca), Path(server.cert), Path(other.key)))
    with pytest.raises(InvalidParameter, match="could not read CA certificate '/absent': No such file"):
        server_context(TlsConfig(True, Path("/absent"), Path(server.cert), Path(server.key)))
    with pytest.raises(InvalidParameter, match="there is no certificate to show"):
        server_context(TlsConfig(True, Path(server.ca), None, Path(server.key)))


def test_an_encrypted_key_is_refused_without_a_question(server: Pair, tmp_path: Path) -> None:
    key = serialization.load_pem_private_key(Path(server.key).read_bytes(), None)
    sealed = tmp_path / "sealed.pem"
    sealed.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(InvalidParameter, match="the key is encrypted"):
        server_context(TlsConfig(True, Path(server.ca), Path(server.cert), sealed))
