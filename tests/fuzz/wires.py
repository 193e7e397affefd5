"""Bytes for the daemon's socket: heads and bodies of HTTP/1, frames of HTTP/2, and calls of BuildKit in them."""

import random
from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import hpack

from husk.builder.protocol.control import Control
from husk.builder.protocol.gateway import Gateway
from husk.builder.protocol.messages import control, gateway
from husk.rpc.http2 import frames
from tests.fuzz import mutate, targets

_UPGRADE = (
    b"POST /%s HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"
    b"X-Docker-Expose-Session-Uuid: abc\r\n"
    b"X-Docker-Expose-Session-Grpc-Method: /moby.filesync.v1.FileSync/DiffCopy\r\n\r\n"
)
_JSON = b"Host: a\r\nContent-Type: application/json\r\n"
_UPGRADED = b"Host: a\r\nConnection: Upgrade\r\nUpgrade: "
_HTTP1 = [
    b"GET /containers/json?all=1 HTTP/1.1\r\nHost: docker\r\n\r\nGET /_ping HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /containers/create HTTP/1.1\r\n" + _JSON + b"Transfer-Encoding: chunked\r\n\r\n"
    b'7\r\n{"Image\r\n3;x=y\r\n": \r\n2\r\n{}\r\n0\r\nA: b\r\n\r\n',
    b"POST /auth HTTP/1.1\r\n" + _JSON + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
    b"PUT /containers/idle/archive?path=/ HTTP/1.0\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nnotar",
    b"POST /containers/web/attach?stream=1&stdin=1 HTTP/1.1\r\n" + _UPGRADED + b"tcp\r\n\r\nhello\n",
    b"GET /containers/web/attach/ws?stream=1 HTTP/1.1\r\n" + _UPGRADED + b"websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    b"\x82\x83abcd\x01\x02\x03\x89\x80abcd",
    b"POST /exec/x/start HTTP/1.1\r\n" + _JSON + b'Content-Length: 14\r\n\r\n{"Tty": false}',
]


def http1(chance: random.Random) -> bytes:
    return mutate.mutated(chance, _HTTP1)


@cache
def _methods() -> Sequence[str]:
    """The calls that the daemon answers."""
    nobody: Any = SimpleNamespace(kept=None)
    found = [*Control(nobody, nobody).methods, *Gateway(nobody, nobody).methods, *_OTHERS]
    return sorted(found, key=lambda path: path.partition("LLBBridge")[1] + path)


@cache
def _definitions() -> list[bytes]:
    return targets.definitions()


def calls(chance: random.Random) -> bytes:
    """A connection with some calls of BuildKit's; those of the gateway belong to a build that waits for them."""
    encoder = hpack.Encoder()
    build = f"build{chance.randrange(10**6)}"
    found = b""
    if chance.random() < 0.7:
        found += call(encoder, 1, _SOLVE, control.SolveRequest(ref=build).encode())
    for number in range(3, 3 + 2 * chance.choice((1, 1, 2, 5)), 2):
        path = chance.choice(_methods())
        message = _message(chance, path)
        found += call(encoder, number, path, message, build=build if chance.random() < 0.9 else mutate.text(chance))
    found += call(encoder, 99, f"{_GATEWAY}Return", b"", build=build)
    if chance.random() < 0.3:
        found = mutate.mutated(chance, [found])
    door = _UPGRADE % chance.choice((b"grpc", b"grpc", b"session")) if chance.random() < 0.9 else b""
    return door + frames.PREFACE + frames.settings({frames.INITIAL_WINDOW_SIZE: 65535}) + found


def call(encoder: hpack.Encoder, number: int, path: str, *messages: bytes, build: str = "") -> bytes:
    headers = [(":method", "POST"), (":path", path), (":scheme", "http"), (":authority", "x")]
    headers += [("content-type", "application/grpc"), ("te", "trailers")]
    headers += [("buildkit-controlapi-buildid", build[:200])] if build else []
    data = b"".join(b"\0" + len(message).to_bytes(4, "big") + message for message in messages)
    out = frames.frame(1, 4, number, encoder.encode([(name, one.encode(errors="replace")) for name, one in headers]))
    for start in range(0, len(data) or 1, _PIECE):
        out += frames.frame(0, 1 if start + _PIECE >= len(data) else 0, number, data[start : start + _PIECE])
    return out


def _message(chance: random.Random, path: str) -> bytes:
    if path == _SOLVE:
        return _solve(chance)
    if path == f"{_GATEWAY}Solve" and chance.random() < 0.8:
        return _asked(chance)
    return targets.mutated_message(chance, [targets.wire(chance, 2)])


def _asked(chance: random.Random) -> bytes:
    """A question of a frontend: a definition."""
    definition = targets.mutated_definition(chance, _definitions())
    return gateway.SolveRequest(definition=definition, evaluate=chance.random() < 0.5).encode()


def _solve(chance: random.Random) -> bytes:
    """A request to build something: a Dockerfile that nobody sends, or a definition."""
    definition = targets.mutated_definition(chance, _definitions()) if chance.random() < 0.6 else None
    message = control.SolveRequest(
        ref=f"ref{chance.randrange(1000)}",
        definition=definition,
        session="none",
        frontend="" if definition else chance.choice(("dockerfile.v0", "gateway.v0", mutate.text(chance))),
        frontend_attrs={
            chance.choice(_ATTRIBUTES): str(mutate.odd(chance))[:500] for _ in range(chance.choice((0, 1, 3)))
        },
    ).encode()
    return message if chance.random() < 0.8 else mutate.mutated(chance, [message])


_SOLVE = "/moby.buildkit.v1.Control/Solve"
_GATEWAY = "/moby.buildkit.v1.frontend.LLBBridge/"
_OTHERS = (
    "/containerd.services.content.v1.Content/Info",
    "/containerd.services.content.v1.Content/Read",
    "/moby.buildkit.v1.Control/Session",
    "/grpc.health.v1.Health/Check",
)
_PIECE = 16000
_ATTRIBUTES = (
    *(
        "filename",
        "target",
        "platform",
        "build-arg:A",
        "context",
        "context:x",
        "source",
        "add-hosts",
        "ulimit",
        "memory",
    ),
    *("shm-size", "cgroup-parent", "no-cache", "cache-from", "cache-imports", "multi-platform", "label:x", "hostname"),
    *("attest:sbom", "attest:provenance", "requestid", "image-resolve-mode", "force-network-mode", "dockerfilekey"),
)
