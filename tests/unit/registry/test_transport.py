"""Who may be spoken to without verified TLS, through which proxy, and how failures read."""

import errno
import socket

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from husk.config import Proxies
from husk.registry.transport import Transport, describe, proxy_for


@pytest.mark.parametrize(
    ("host", "insecure"),
    [
        ("127.0.0.1:5000", True),
        ("127.9.9.9", True),
        ("[::1]:5000", True),
        ("localhost", True),
        ("localhost:5000", True),
        ("registry.localhost:5000", True),
        ("plain.example:5000", True),
        ("plain.example", False),
        ("plain.example:5001", False),
        ("bare.example", True),
        ("10.1.2.3:443", True),
        ("10.2.2.3", False),
        ("192.168.7.7", True),
        ("[fd00::5]:80", True),
        ("8.8.8.8", False),
        ("localhost.example.invalid", False),
    ],
)
async def test_only_loopback_and_listed_registries_are_insecure(host: str, insecure: bool) -> None:
    listed = ["plain.example:5000", "http://bare.example/", "10.1.0.0/16", "192.168.7.7/32", "fd00::/8", "not/a/net"]
    assert await Transport("test", listed).is_insecure(host) is insecure


async def test_who_is_insecure_may_change_while_running() -> None:
    transport = Transport("test", ["plain.example"])
    assert await transport.is_insecure("plain.example")
    transport.configure(["10.0.0.0/8"])
    assert not await transport.is_insecure("plain.example")
    assert await transport.is_insecure("10.0.0.1") and await transport.is_insecure("127.0.0.1")


async def test_a_secure_registry_is_https_without_being_asked() -> None:
    assert await Transport("test").locate("registry.example.invalid:5000") == "https://registry.example.invalid:5000"


def test_the_environments_proxy_is_used_except_for_loopback_and_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("http_proxy", "plainproxy:3128")
    monkeypatch.setenv("no_proxy", "internal.example")
    assert proxy_for("https://ghcr.io/v2/") == "http://proxy:3128"
    assert proxy_for("http://ghcr.io/v2/") == "http://plainproxy:3128"
    for direct in ("http://127.0.0.1:5000/", "http://[::1]/", "http://localhost:1/", "https://internal.example/v2/"):
        assert proxy_for(direct) is None
    monkeypatch.delenv("https_proxy")
    assert proxy_for("https://ghcr.io/v2/") is None


def test_the_settings_proxy_goes_before_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://other:3128")
    monkeypatch.setenv("no_proxy", "ghcr.io")
    settings = Proxies("http://plain:1", "http://secure:2", "internal.example,10.0.0.0/8,.corp.example,192.0.2.7:5000")
    assert proxy_for("https://ghcr.io/v2/", settings) == "http://secure:2"
    assert proxy_for("http://ghcr.io/v2/", settings) == "http://plain:1"
    for direct in (
        "https://internal.example/",
        "http://10.9.9.9:5000/",
        "https://a.corp.example/",
        "http://127.0.0.1/",
    ):
        assert proxy_for(direct, settings) is None
    assert proxy_for("http://192.0.2.7:5000/", settings) is None
    assert proxy_for("http://192.0.2.7:5001/", settings) == "http://plain:1"


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
