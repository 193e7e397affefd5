"""Requests of every operation of the API, with paths, queries, headers and bodies that are nearly as they should be."""

import ipaddress
import json
import random
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

import husk.api
from husk.api.calls.router import Kind, Route
from husk.api.routes import all_routes
from tests.fuzz import mutate, targets

# Things that are there (see `test_live`), and names of nothing.
NAMES = ("web", "idle", "busybox", "busybox:latest", "net", "vol", "bridge", "none")
_PARAMETER = re.compile(r"""(?:text|flag|integer|timestamp|file_name|get|getall)\(\s*"([A-Za-z_]+)\"""")
_FILTERS = (
    *(
        "name",
        "id",
        "label",
        "status",
        "ancestor",
        "before",
        "since",
        "volume",
        "network",
        "publish",
        "expose",
        "health",
    ),
    *("exited", "is-task", "reference", "dangling", "until", "driver", "scope", "type", "event", "image", "container"),
    *("service", "node", "desired-state", "role", "mode", "membership", "all"),
)
# The daemon has a network namespace of its own; what it makes in it is to stay away from the rest all the same.
_SUBNETS = ipaddress.ip_network("10.208.0.0/13")

_POOL = {"Subnet": "10.210.0.0/16", "Gateway": "10.210.0.1"}
_EXEC = {"Cmd": ["true"], "AttachStdout": True, "Env": ["A=1"], "User": "0:0", "WorkingDir": "/", "Tty": True}
_TMPFS = {"type": "tmpfs", "device": "tmpfs", "o": "size=1m"}
_SWARM = {"Name": "default", "Orchestration": {"TaskHistoryRetentionLimit": 5}, "CAConfig": {"NodeCertExpiry": 10**15}}
_ENDPOINT = {"Aliases": ["a"], "IPAMConfig": {"IPv4Address": "10.210.0.5"}}
_NAMED = {"Name": "s", "Data": "YQ==", "Labels": {"a": "b"}}
_LISTEN = {"ListenAddr": "127.0.0.1:2377", "AdvertiseAddr": "127.0.0.1"}
_BODIES: dict[str, dict[str, Any]] = {
    "/containers/create": targets.CREATE,
    "/containers/run": targets.CREATE,
    "/containers/{id}/exec": {**_EXEC, "ConsoleSize": [10, 20], "DetachKeys": "ctrl-p"},
    "/exec/{id}/start": {"Detach": True, "Tty": False, "ConsoleSize": [1, 2]},
    "/containers/{id}/update": {"Memory": 1 << 26, "RestartPolicy": {"Name": "no"}, "CpuShares": 5, "PidsLimit": 9},
    "/networks/create": {**targets.NETWORK, "IPAM": {"Config": [_POOL]}},
    "/networks/{id}/connect": {"Container": "idle", "EndpointConfig": _ENDPOINT},
    "/networks/{id}/disconnect": {"Container": "idle", "Force": True},
    "/volumes/create": {"Name": "v", "Driver": "local", "DriverOpts": _TMPFS, "Labels": {"a": "b"}},
    "/commit": targets.CONFIG,
    "/auth": {"username": "a", "password": "b", "serveraddress": "127.0.0.1:1"},
    "/swarm/init": {**_LISTEN, "Spec": _SWARM, "DefaultAddrPool": ["10.212.0.0/16"], "SubnetSize": 24},
    "/swarm/join": {**_LISTEN, "RemoteAddrs": ["127.0.0.1:1"], "JoinToken": "SWMTKN-1-a-b"},
    "/swarm/update": _SWARM,
    "/swarm/unlock": {"UnlockKey": "SWMKEY-1-a"},
    "/services/create": targets.SPEC,
    "/services/{id}/update": targets.SPEC,
    "/nodes/{id}/update": {"Role": "manager", "Availability": "active", "Labels": {"a": "b"}},
    "/secrets/create": _NAMED,
    "/secrets/{id}/update": _NAMED,
    "/configs/create": {**_NAMED, "Templating": {"Name": "golang"}},
    "/configs/{id}/update": _NAMED,
}
_HEADERS = (
    *("X-Registry-Auth", "X-Registry-Config", "Content-Type", "Upgrade", "Connection", "Accept", "Expect", "Host"),
    *("X-Docker-Expose-Session-Uuid", "If-Modified-Since", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Origin"),
)
# Streams of other kinds have doors of their own.
_ELSEWHERE = ("/session", "/grpc", "/containers/{id}/attach/ws", "/swarm/restore")


class Sent(msgspec.Struct, frozen=True):
    """One request."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes | None
    # It waits, or goes on for long: nobody does for the fuzzer.
    stream: bool

    def __str__(self) -> str:
        body = (
            self.body if self.body is None or len(self.body) < 3000 else self.body[:1500] + b" ... " + self.body[-500:]
        )
        return f"{self.method} {self.target[:3000]} {self.headers} {body!r}"


@cache
def _parameters(module: str = "") -> tuple[str, ...]:
    """Every name that a query is asked for by a module of operations, or by all of them."""
    sources = [Path(str(sys.modules[module].__file__))] if module else Path(husk.api.__file__).parent.rglob("*.py")
    return tuple(sorted({name for path in sources for name in _PARAMETER.findall(path.read_text())}))


@cache
def _routes() -> tuple[Route, ...]:
    return tuple(route for route in all_routes() if route.pattern not in _ELSEWHERE)


def request(chance: random.Random, place: str, names: Sequence[str] = NAMES) -> Sent:
    """A request of some operation; `place` is a directory that stands for the host's root."""
    route = chance.choice(_routes())
    body: bytes | None = None
    headers: dict[str, str] = {}
    if route.method in ("POST", "PUT") and (route.pattern in _BODIES or chance.random() < 0.1):
        body = mutate.mutated_json(chance, [json.dumps(_BODIES.get(route.pattern, {"a": [1]})).encode()])
        body = _apart(body, place)
        headers["Content-Type"] = "application/json"
    if chance.random() < 0.15:
        headers[chance.choice(_HEADERS)] = re.sub(r"[^ -~]", "?", _word(chance, names))
    return Sent(route.method, _target(chance, route, names), headers, body, route.kind is Kind.STREAM)


def _target(chance: random.Random, route: Route, names: Sequence[str]) -> str:
    path = re.sub(r"\{\w+\}", lambda _: _name(chance, names), route.pattern)
    if chance.random() < 0.5:
        path = chance.choice(("/v1.44", "/v1.24", "/v1.52", "/v1.0", "/v99.9", "/v1.44/", "/v")) + path
    words = []
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        own = _parameters(route.handler.__module__) if chance.random() < 0.8 else ()
        name = chance.choice(own or _parameters())
        words.append(f"{name}={quote(_value(chance, name, names), safe='')}")
    if route.pattern == "/containers/create" and chance.random() < 0.5:
        words.append(f"name={chance.choice(names)}{chance.randrange(4)}")
    return path + ("?" + "&".join(words) if words else "")


def _name(chance: random.Random, names: Sequence[str]) -> str:
    if chance.random() < 0.8:
        return quote(chance.choice(names))
    return quote(mutate.mutated(chance, [chance.choice(names).encode()])[:3000]) or "x"


def _value(chance: random.Random, name: str, names: Sequence[str]) -> str:
    if name == "filters":
        found = {chance.choice(_FILTERS): [_word(chance, names)] for _ in range(chance.choice((1, 2)))}
        return mutate.mutated_json(chance, [json.dumps(found, ensure_ascii=False).encode(errors="replace")]).decode(
            errors="replace"
        )[:4000]
    return _word(chance, names)


def _word(chance: random.Random, names: Sequence[str]) -> str:
    match chance.randrange(5):
        case 0:
            return chance.choice(names)
        case 1:
            return chance.choice(
                ("1", "true", "0", "10", "-1", "all", "SIGTERM", "json", "1700000000.5", "10m", "a=b", "/")
            )
        case 2:
            return str(mutate.odd(chance))[:3000]
        case 3:
            return mutate.mutated(chance, [chance.choice(names).encode(), b"{}", b"8000-8010/tcp"]).decode(
                errors="replace"
            )[:3000]
        case _:
            return mutate.text(chance)[:3000]


def _apart(body: bytes, place: str) -> bytes:
    """Without subnets that somebody else may have, and with all paths of the host below `place`."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return body
    for mounts in _below(document, "hostconfig", "binds"):
        if isinstance(mounts, list):
            mounts[:] = [place + one if isinstance(one, str) and one.startswith("/") else one for one in mounts]
    for mounts in _below(document, "hostconfig", "mounts"):
        for one in mounts if isinstance(mounts, list) else ():
            for key in one if isinstance(one, dict) else ():
                if key.lower() == "source" and str(one[key]).startswith("/"):
                    one[key] = place + one[key]
    for wanted in [one for found in _below(document, "ipam", "config") if isinstance(found, list) for one in found]:
        for key in ("Subnet", "IPRange"):
            try:
                fine = ipaddress.ip_network(wanted[key]).subnet_of(_SUBNETS)  # type: ignore[arg-type]
            except (KeyError, TypeError, ValueError):
                continue
            if not fine:
                wanted[key] = "10.211.0.0/24"
    return json.dumps(document, ensure_ascii=False).encode(errors="surrogatepass")


def _below(document: Any, *keys: str) -> list[Any]:
    """Return the values at the end of these keys, in whatever case they are written."""
    found = [document]
    for key in keys:
        found = [one[name] for one in found if isinstance(one, dict) for name in one if name.lower() == key]
    return found
