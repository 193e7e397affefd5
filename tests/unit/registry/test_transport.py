"""Open connections go nowhere else, verified ones lead to verified ones, credentials stay where they belong, and how
failures read."""

import asyncio
import contextlib
import errno
import shutil
import socket
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import aiohttp
import pytest
from aiohttp import web
from aiohttp.client_reqrep import ConnectionKey

from husk.config import NO_PROXIES, Proxies
from husk.errors import HuskError, SystemFault
from husk.registry import transport as module
from husk.registry.transport import Interrupted, Transport, TransportLimits, Unreachable, describe
from husk.registry.web import open_file
from tests.support.certificates import Authority, Pair
from tests.support.names import ELSEWHERE, answer_names


async def test_who_is_insecure_may_change_while_running() -> None:
    transport = Transport("test", ["plain.example"])
    assert await transport.is_insecure("plain.example")
    transport.configure(["10.0.0.0/8"])
    assert not await transport.is_insecure("plain.example")
    assert await transport.is_insecure("10.0.0.1") and await transport.is_insecure("127.0.0.1")


async def test_of_many_hosts_the_oldest_are_forgotten() -> None:
    asked: list[str] = []

    class Asked(Transport):
        async def is_insecure(self, host: str) -> bool:
            asked.append(host)
            return False

    transport = Asked("test", limits=TransportLimits(remembered=10))
    hosts = [f"h{number}.test" for number in range(100)]
    for host in hosts:
        assert await transport.locate(host) == f"https://{host}"
    assert asked == hosts
    for host in hosts[::-1]:
        await transport.locate(host)
    assert asked[100:] == hosts[89::-1], "the last ones are remembered"


async def test_a_secure_registry_is_https_without_being_asked() -> None:
    assert await Transport("test").locate("registry.example.invalid:5000") == "https://registry.example.invalid:5000"


class Server:
    """Answers on loopback by path, plain or with a certificate; `asked` are the requests as (method, path, headers)."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self._context = context
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.bodies: list[bytes] = []
        self.moves: dict[str, tuple[int, str]] = {}
        self.port = 0

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.method, request.path, {k.lower(): v for k, v in request.headers.items()}))
        self.bodies.append(await request.read())
        status, location = self.moves.get(request.path, (200, ""))
        return web.Response(status=status, headers={"Location": location} if location else {}, text="hello")

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._context).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def paths(self) -> list[str]:
        return [path for _, path, _ in self.asked]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return Authority(tmp_path_factory.mktemp("ca")).issue("server", addresses=["verified.test", "local.test"])


@pytest.fixture
def context(pair: Pair) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    return context


def trusting(
    pair: Pair, certs: Path, *hosts: str, insecure: Sequence[str] = (), proxies: Proxies = NO_PROXIES
) -> Transport:
    """A transport that trusts the test's authority at these hosts."""
    for host in hosts:
        (certs / host).mkdir(parents=True)
        shutil.copy(pair.ca, certs / host / "ca.crt")
    return Transport("test", insecure, certificates=[certs], proxies=proxies)


async def test_one_address_among_others_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_names(monkeypatch, {"rebound.test": [["127.0.0.1", ELSEWHERE]], "registry-1.docker.io": [["127.0.0.1"]]})
    async with Server() as server, closing(Transport("test")) as transport:
        for name in ("rebound.test", "registry-1.docker.io"):
            base = await transport.locate(f"{name}:{server.port}")
            assert base == f"https://{name}:{server.port}"
            with pytest.raises(Unreachable, match="server gave HTTP response to HTTPS client"):
                await ask(transport, f"{base}/v2/", {"Authorization": "Basic secret"})
            with pytest.raises(Unreachable, match="refused to speak plain HTTP"):
                await ask(transport, f"http://{name}:{server.port}/v2/", {"Authorization": "Basic secret"})
        assert server.asked == []


async def test_a_certificate_that_nobody_signed_is_refused_where_one_address_is_elsewhere(
    monkeypatch: pytest.MonkeyPatch, context: ssl.SSLContext
) -> None:
    answer_names(monkeypatch, {"verified.test": [["127.0.0.1", ELSEWHERE]]})
    async with Server(context) as server, closing(Transport("test")) as transport:
        with pytest.raises(Unreachable, match="certificate signed by unknown authority"):
            await ask(transport, f"https://verified.test:{server.port}/v2/", {"Authorization": "Basic secret"})
        assert server.asked == []


async def test_an_open_connection_goes_to_the_addresses_that_were_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    # Any answer after the first leads elsewhere: who asked again for the connection would be there.
    names = answer_names(monkeypatch, {"local.test": [["127.0.0.1"], ["127.0.0.7"]]})
    async with Server() as server, closing(Transport("test")) as transport:
        assert await ask(transport, f"http://local.test:{server.port}/v2/") == 200
        assert names.asked == ["local.test"]
        with pytest.raises(Unreachable, match="connection refused"):
            await ask(transport, f"http://local.test:{server.port}/v2/")
        assert len(server.asked) == 1


async def test_a_name_that_is_no_longer_inside_is_no_longer_open(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_names(monkeypatch, {"local.test": [["127.0.0.1"]] * 4 + [["127.0.0.1", ELSEWHERE]]})
    async with Server() as server, closing(Transport("test")) as transport:
        host = f"local.test:{server.port}"
        base = await transport.locate(host)
        assert base == f"http://{host}"
        with pytest.raises(Unreachable, match="refused to speak plain HTTP"):
            await ask(transport, f"{base}/v2/", {"Authorization": "Basic secret"})
        assert not any("authorization" in headers for _, _, headers in server.asked)
        transport.forget(host)
        assert await transport.locate(host) == f"https://{host}"


async def test_an_administrators_plain_mirror_is_spoken_to_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_names(monkeypatch, {"mirror.test": [[ELSEWHERE]]})
    async with Server() as server:
        url = f"http://mirror.test:{server.port}"
        async with closing(Transport("test", mirrors=[f"{url}/"])) as transport:
            assert await ask(transport, f"{url}/v2/") == 200
            assert not await transport.is_insecure(f"mirror.test:{server.port}")
            transport.configure([], [])
            with pytest.raises(Unreachable, match="refused to speak plain HTTP"):
                await ask(transport, f"{url}/v2/")


async def test_a_verified_connection_leads_to_verified_ones_only(
    monkeypatch: pytest.MonkeyPatch, pair: Pair, context: ssl.SSLContext, tmp_path: Path
) -> None:
    answer_names(monkeypatch, {"verified.test": [[ELSEWHERE]], "local.test": [["127.0.0.1"]]})
    async with Server(context) as first, Server() as plain, Server(context) as unknown:
        host = f"verified.test:{first.port}"
        async with closing(trusting(pair, tmp_path, host)) as transport:
            first.moves = {
                "/plain": (307, f"http://127.0.0.1:{plain.port}/blob"),
                "/unknown": (307, f"https://local.test:{unknown.port}/blob"),
                "/detour": (302, f"https://{host}/plain"),
                "/odd": (302, "ftp://127.0.0.1/x"),
            }
            for path in ("/plain", "/detour"):
                for registry in (True, False):
                    with pytest.raises(SystemFault, match="refused to follow a redirect from HTTPS to HTTP"):
                        await ask(transport, f"https://{host}{path}", registry=registry)
            # Alone that one may have any certificate.
            assert await ask(transport, f"https://local.test:{unknown.port}/blob") == 200
            with pytest.raises(Unreachable, match="certificate signed by unknown authority"):
                await ask(transport, f"https://{host}/unknown")
            with pytest.raises(SystemFault, match='unsupported protocol scheme "ftp"'):
                await ask(transport, f"https://{host}/odd")
            with pytest.raises(SystemFault, match="refused to follow a redirect from HTTPS to HTTP"):
                await ask(transport, f"http://127.0.0.1:{plain.port}/upload", since=f"https://{host}")
            assert plain.asked == [] and len(unknown.asked) == 1


async def test_each_hop_has_its_own_proxy_and_certificates(
    monkeypatch: pytest.MonkeyPatch, pair: Pair, context: ssl.SSLContext, tmp_path: Path
) -> None:
    answer_names(monkeypatch, {"verified.test": [[ELSEWHERE]]})
    async with Server() as first, Server() as proxy, Server(context) as store:
        host = f"verified.test:{store.port}"
        first.moves = {"/a": (307, "http://far.test/blob"), "/b": (307, f"https://{host}/blob")}
        transport = trusting(pair, tmp_path, host, proxies=Proxies(f"http://127.0.0.1:{proxy.port}", "", ""))
        async with closing(transport):
            assert await ask(transport, f"http://127.0.0.1:{first.port}/a") == 200
            assert proxy.asked[0][2]["host"] == "far.test"
            assert await ask(transport, f"http://127.0.0.1:{first.port}/b") == 200
            assert store.paths() == ["/blob"]


async def test_credentials_stay_with_their_origin() -> None:
    async with Server() as first, Server() as second, closing(Transport("test")) as transport:
        here, there = f"http://127.0.0.1:{first.port}", f"http://127.0.0.1:{second.port}"
        first.moves = {"/away": (307, f"{there}/back"), "/same": (307, "/end")}
        second.moves = {"/back": (307, f"{here}/end")}
        headers = {"Authorization": "Basic secret", "X-Docker-Token": "true", "Accept": "text/plain"}
        assert await ask(transport, f"{here}/away", headers) == 200
        assert await ask(transport, f"{here}/same", headers) == 200
        told = [(path, "authorization" in said) for _, path, said in first.asked + second.asked]
        assert told == [("/away", True), ("/end", False), ("/same", True), ("/end", True), ("/back", False)]
        assert "x-docker-token" not in second.asked[0][2] and second.asked[0][2]["accept"] == "text/plain"


async def test_a_form_with_a_token_goes_to_nobody_else() -> None:
    async with Server() as first, Server() as second, closing(Transport("test")) as transport:
        first.moves = {"/token": (307, f"http://127.0.0.1:{second.port}/token"), "/turn": (307, "/end")}
        form = {"refresh_token": "secret"}
        with pytest.raises(SystemFault, match="refused to follow a redirect with credentials to http"):
            await ask(transport, f"http://127.0.0.1:{first.port}/token", form=form, method="POST")
        assert second.asked == []
        assert await ask(transport, f"http://127.0.0.1:{first.port}/turn", form=form, method="POST") == 200
        assert first.bodies[-1] == b"refresh_token=secret"
        first.moves["/token"] = (303, f"http://127.0.0.1:{second.port}/token")
        assert await ask(transport, f"http://127.0.0.1:{first.port}/token", form=form, method="POST") == 200
        assert second.asked[0][0] == "GET" and second.bodies == [b""]


async def test_a_body_that_is_wanted_elsewhere_is_sent_there_from_its_beginning() -> None:
    made: list[int] = []

    async def pieces() -> AsyncIterator[bytes]:
        made.append(1)
        yield b"da"
        yield b"ta"

    async with Server() as first, Server() as second, closing(Transport("test")) as transport:
        first.moves = {"/up": (307, f"http://127.0.0.1:{second.port}/up"), "/lost": (302, "/up")}
        assert await ask(transport, f"http://127.0.0.1:{first.port}/up", body=pieces, method="PUT") == 200
        assert second.bodies == [b"data"] and len(made) == 2
        assert await ask(transport, f"http://127.0.0.1:{first.port}/lost", body=pieces, method="PUT") == 302


@pytest.mark.parametrize("registry", [True, False])
async def test_a_circle_of_redirects_has_an_end(registry: bool) -> None:
    async with Server() as server, closing(Transport("test")) as transport:
        server.moves = {"/a": (302, "/b"), "/b": (308, "/a")}
        url = f"http://127.0.0.1:{server.port}/a"
        with pytest.raises(SystemFault) as caught:
            await ask(transport, url, registry=registry)
        assert caught.value.message == f'Get "{url}": stopped after 10 redirects' and len(server.asked) == 11


@pytest.mark.parametrize(
    "location", ["http://[", "http://far.test:99999/", "file:///etc/passwd", "http://\\@far.test/"]
)
async def test_a_redirect_to_what_is_no_address_says_so(location: str) -> None:
    async with Server() as server, closing(Transport("test")) as transport:
        server.moves = {"/a": (302, location)}
        with pytest.raises(SystemFault, match=r"parse Location header|unsupported protocol scheme|lookup"):
            await ask(transport, f"http://127.0.0.1:{server.port}/a")
        assert len(server.asked) == 1


@asynccontextmanager
async def talking(begin: bytes, endless: bytes) -> AsyncIterator[str]:
    """The address of a server that goes on and on."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(begin)
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(endless)
                await writer.drain()
                await asyncio.sleep(0)
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/a"


async def test_a_server_that_never_comes_to_its_answer_is_left() -> None:
    hasty = Transport("test", limits=TransportLimits(headers_seconds=0.2))
    async with talking(b"", b"HTTP/1.1 100 Continue\r\n\r\n") as url, closing(hasty) as transport:
        with pytest.raises(Unreachable, match="timeout awaiting response headers"):
            await ask(transport, url)


async def test_a_document_that_never_ends_is_left() -> None:
    begin = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;"
    async with talking(begin, b"extension" * 100) as url, closing(Transport("test")) as transport:
        with pytest.raises(Interrupted):
            async with transport.send("GET", url) as response:
                await module.read_limited(response, 100, patience=0.2)


async def test_chunks_of_a_few_bytes_are_not_read_to_their_end() -> None:
    begin = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with talking(begin, b"1\r\na\r\n" * 1000) as url, closing(Transport("test")) as transport:
        with pytest.raises(SystemFault, match="chunks of a few bytes"):
            async with transport.send("GET", url) as response:
                await module.read_limited(response, 1 << 30)
        with pytest.raises(SystemFault, match="chunks of a few bytes"):
            async with open_file(transport, url) as file:
                async for _ in file.chunks():
                    pass


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_an_answer_without_a_body_is_read_at_once(method: str) -> None:
    """The HTTP library has one such body for all answers, which ends for its first reader only."""
    begin = (
        b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: "
        + (b"55" if method == "HEAD" else b"0")
        + b"\r\n\r\n"
    )
    async with talking(begin, b"") as url, closing(Transport("test")) as transport:
        for _ in range(3):
            async with transport.send(method, url) as response:
                assert await module.read_limited(response, 1000) == b""
                assert [piece async for piece in module.pieces_of(response)] == []


async def test_small_chunks_that_bring_something_are_read() -> None:
    body = b"10\r\n0123456789abcdef\r\n" * 10_000 + b"0\r\n\r\n"
    begin = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with (
        talking(begin + body, b"") as url,
        closing(Transport("test")) as transport,
        transport.send("GET", url) as response,
    ):
        assert len(await module.read_limited(response, 1 << 30)) == 160_000


@pytest.mark.parametrize("answer", [b"X: y\r\n" * 1000, b"X: " + b"a" * 100_000, b"\0\r\n"])
async def test_what_is_no_answer_of_http_is_said_in_words(answer: bytes) -> None:
    async with talking(b"HTTP/1.1 200 OK\r\n", answer) as url, closing(Transport("test")) as transport:
        with pytest.raises(Unreachable, match=r'v2/": malformed HTTP response: [A-Z]') as caught:
            await ask(transport, url)
        assert len(caught.value.message) < 400


async def test_a_host_that_reads_in_two_ways_is_not_asked() -> None:
    async with Server() as server, closing(Transport("test")) as transport:
        with pytest.raises(HuskError):
            await ask(transport, f"http://127.0.0.1:{server.port}\\@far.test/v2/")
        assert server.asked == []


@asynccontextmanager
async def closing(transport: Transport) -> AsyncIterator[Transport]:
    try:
        yield transport
    finally:
        await transport.close()


async def ask(transport: Transport, url: str, headers: Mapping[str, str] | None = None, **more: Any) -> int:
    async with transport.send(more.pop("method", "GET"), url, headers, **more) as response:
        await response.read()
        return response.status


KEY = ConnectionKey("h", 1, False, True, None, None, None)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            aiohttp.ClientConnectorError(KEY, OSError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 7)")),
            "dial tcp 127.0.0.1:7: connect: connection refused",
        ),
        (
            aiohttp.ClientConnectorError(KEY, OSError(errno.EHOSTUNREACH, "whatever")),
            "dial tcp host:443: connect: no route to host",
        ),
        (
            aiohttp.ClientConnectorDNSError(KEY, socket.gaierror(socket.EAI_NONAME, "Name or service not known")),
            "dial tcp: lookup host: no such host",
        ),
        (
            aiohttp.ClientConnectorDNSError(KEY, socket.gaierror(socket.EAI_AGAIN, "Temporary failure")),
            "dial tcp: lookup host: server misbehaving",
        ),
        (aiohttp.ConnectionTimeoutError(), "dial tcp host:443: i/o timeout"),
        (aiohttp.SocketTimeoutError(), "net/http: timeout awaiting response headers"),
        (aiohttp.ServerDisconnectedError(), "EOF"),
        (aiohttp.ClientPayloadError("x"), "unexpected EOF"),
        (aiohttp.ClientOSError(errno.ECONNRESET, "x"), "connection reset by peer"),
        (ValueError("odd"), "odd"),
    ],
)
def test_failures_read_as_in_dockerd(error: Exception, words: str) -> None:
    assert describe(error, "https://host/v2/") == words
