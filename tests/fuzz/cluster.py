"""Calls for the cluster port, as workers make them and strangers try to; and TLS that goes wrong on its way."""

import asyncio
import json
import random
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import hpack

from husk.kernel import namespaces
from husk.rpc.http2 import frames
from husk.swarm.ca import authority
from husk.swarm.ca.holders import MANAGER_NAME
from husk.swarm.ca.identity import joining_context
from husk.swarm.ca.tokens import root_digest
from husk.swarm.port import addresses, dispatch, logs
from husk.swarm.port.dispatch import DispatchBody
from husk.swarm.port.join import JoinResult, join
from husk.swarm.port.messages import ENTER, FOLLOW, JOIN, RENEW, ROOT, FollowRequest, JoinRequest, RenewRequest
from husk.text.endpoints import HostPort
from tests.fuzz import mutate, targets, wires
from tests.support.daemon import Daemon

_HOST, PORT = "127.0.0.1", 2377
# As many calls of a node are taken only now and then, several have more of them.
_WORKERS = 4
_SERVICE: dict[str, Any] = {
    "Name": "fuzzed",
    "Mode": {"Global": {}},
    "TaskTemplate": {
        "ContainerSpec": {"Image": "busybox", "Command": ["sleep", "1000"]},
        "Placement": {"Constraints": ["node.role==worker"]},
        "RestartPolicy": {"Delay": 0},
        "Networks": [{"Target": "over"}],
    },
}
_PATHS = (
    *(ROOT, JOIN, RENEW, FOLLOW, ENTER),
    *(dispatch.REPORT, dispatch.ASSIGNMENTS, dispatch.HEARTBEAT, dispatch.DESCRIBE, dispatch.LEAVE, dispatch.REPORT),
    *(addresses.TAKE, addresses.SEEK, addresses.ANNOUNCE, addresses.GIVE_BACK, addresses.TAKE),
    *(logs.WANTED, logs.SEND, logs.READ),
)


def reached(daemon: Daemon, port: int) -> socket.socket:
    """A connection to a port in the daemon's network namespace."""
    channel: socket.socket = namespaces.run_inside(Path(f"/proc/{daemon.pid}/ns/net"), socket.socket)
    channel.connect((_HOST, port))
    return channel


class Swarm:
    """The swarm of a daemon, with a few workers that the fuzzer speaks for, who have tasks and an overlay network."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        begun = daemon.http("POST", "/swarm/init", {"ListenAddr": f"{_HOST}:{PORT}", "AdvertiseAddr": _HOST})
        assert begun.status == 200, begun.body
        daemon.http("POST", "/networks/create", {"Name": "over", "Driver": "overlay", "Attachable": True})
        made = daemon.http("POST", "/services/create", _SERVICE)
        assert made.status == 201, made.body
        self._token = daemon.http("GET", "/swarm").json()["JoinTokens"]["Worker"]
        self._workers = [self._join() for _ in range(_WORKERS)]
        self._nodes = {each.holder.node for each in self._workers}
        roots = self._workers[0].identity.roots
        self._known = FollowRequest(roots=root_digest(roots)).encode()
        self._contexts = [each.identity.client_context() for each in self._workers] + [joining_context(roots)]
        self._tasks: list[dict[str, Any]] = []
        for context in self._contexts[:-1]:
            self.ask(context, [(dispatch.HEARTBEAT, DispatchBody().encode())])
        self.again()

    def _join(self) -> JoinResult:
        request = JoinRequest(token=self._token, hostname="fuzzed", address=_HOST)
        there = Path(f"/proc/{self._daemon.pid}/ns/net")
        return namespaces.run_inside(there, lambda: asyncio.run(join([HostPort(_HOST, PORT)], request)))

    def again(self) -> None:
        """Delete the nodes that are new, and read the tasks of the others."""
        for node in self._daemon.http("GET", "/nodes").json():
            if node["ID"] not in self._nodes and node["Spec"]["Role"] == "worker":
                self._daemon.http("DELETE", f"/nodes/{node['ID']}?force=1")
        self._tasks = [each for each in self._daemon.http("GET", "/tasks").json() if each.get("NodeID") in self._nodes]
        self._network = self._daemon.http("GET", "/networks/over").json()["Id"]

    def caller(self, chance: random.Random) -> ssl.SSLContext:
        """TLS of a worker or, less often, of a stranger."""
        return chance.choice(self._contexts)

    def ask(self, context: ssl.SSLContext, calls: list[tuple[str, bytes]]) -> bytes:
        return self.tell(context, conversation([(path, [message]) for path, message in calls]))

    def tell(self, context: ssl.SSLContext, data: bytes, patience: float = 0.5) -> bytes:
        """Return all answers until nothing more comes."""
        said = b""
        with reached(self._daemon, PORT) as plain, suppress(OSError):
            plain.settimeout(10)
            with context.wrap_socket(plain, server_hostname=MANAGER_NAME) as channel:
                channel.settimeout(patience)
                channel.sendall(data)
                while len(said) < 1 << 20 and (piece := channel.recv(65536)):
                    said += piece
        return said

    def words(self, chance: random.Random) -> bytes:
        """A connection with some calls."""
        paths = [chance.choice(_PATHS) for _ in range(chance.choice((1, 1, 2, 5)))]
        found = conversation([(path, self._messages(chance, path)) for path in paths])
        return mutate.mutated(chance, [found]) if chance.random() < 0.2 else found

    def _messages(self, chance: random.Random, path: str) -> list[bytes]:
        if chance.random() < 0.1:
            return [targets.mutated_message(chance, [targets.wire(chance, 2)])]
        if path in (logs.SEND, logs.READ):
            return [self._body(chance, path) for _ in range(chance.choice((1, 1, 3)))]
        if path == JOIN:
            return [self._request_to_join(chance)]
        if path in (RENEW, ENTER):
            return [RenewRequest(request=_request(chance)).encode()]
        if path == FOLLOW:
            return [mutate.mutated(chance, [self._known])]
        if path in (dispatch.ASSIGNMENTS, logs.WANTED):
            return [] if chance.random() < 0.9 else [b"x"]
        return [DispatchBody(content=self._body(chance, path)).encode()]

    def _request_to_join(self, chance: random.Random) -> bytes:
        words = {
            "availability": "active",
            "hostname": "h",
            "address": _HOST,
            "data_path_address": _HOST,
            "release": "0.2",
        }
        for name in chance.sample(sorted(words), chance.choice((0, 1, 2))):
            words[name] = mutate.text(chance)
        return JoinRequest(
            token=self._token if chance.random() < 0.95 else mutate.text(chance),
            request=_request(chance),
            description=mutate.mutated_json(chance, [_json(_DESCRIPTION)]),
            port=chance.choice((0, 1, 65535, 2**31, 2**62)),
            protocol=chance.choice((0, 1, 1, 2, 2**31)),
            **words,
        ).encode()

    def _body(self, chance: random.Random, path: str) -> bytes:
        task = chance.choice(self._tasks) if self._tasks else {"ID": "none", "NodeID": "none"}
        status = {"timestamp": "2026-01-02T03:04:05Z", "state": "running", "message": "m", "container_id": "0" * 64}
        status["state"] = chance.choice(("accepted", "preparing", "running", "failed", "complete", "shutdown"))
        report = {"task_id": task["ID"], "status": status | {"pid": 7, "exit_code": 0, "since_ns": 5}}
        wish = {"network": self._network, "container": "0" * 64, "names": ["a"], "task": task["ID"], "ipv6": True}
        query = {"stdout": True, "stderr": True, "follow": False, "tail": 5}
        examples: dict[str, Any] = {
            dispatch.REPORT: {"reports": [report, report]},
            dispatch.DESCRIBE: _DESCRIPTION,
            addresses.TAKE: chance.choice((wish, {"network": self._network, "host": True})),
            addresses.SEEK: {"network": "over"},
            addresses.ANNOUNCE: {"key": "A" * 43 + "=", "port": 51820},
            addresses.GIVE_BACK: {"keys": [f"{self._network}/10.0.1.{chance.randrange(9)}"]},
            logs.READ: {"node": task["NodeID"], "tasks": [task["ID"]], "query": query, "name": "x"},
        }
        example = _json(examples.get(path, {"a": 1}))
        return example if chance.random() < 0.2 else mutate.mutated_json(chance, [example])


_DESCRIPTION = {
    "hostname": "h", "os": "linux", "architecture": "x86_64", "nano_cpus": 10**9, "memory": 2**30,
    "generic": {"gpu": 1}, "engine_version": "0.2", "engine_labels": {"a": "b"}, "plugins": [["Volume", "local"]],
    "subnets": ["10.7.0.0/24"], "protocol": 1,
}  # fmt: skip


def _request(chance: random.Random) -> bytes:
    """For a certificate."""
    request = authority.new_request()[1]
    return request if chance.random() < 0.7 else mutate.mutated(chance, [request])


def _json(document: object) -> bytes:
    return json.dumps(document).encode()


def conversation(calls: list[tuple[str, list[bytes]]]) -> bytes:
    encoder = hpack.Encoder()
    found = frames.PREFACE + frames.settings({frames.INITIAL_WINDOW_SIZE: 65535})
    for number, (path, messages) in enumerate(calls):
        found += wires.call(encoder, 2 * number + 1, path, *messages)
    return found


def shake(
    chance: random.Random, channel: socket.socket, context: ssl.SSLContext, name: str, words: Callable[[], bytes]
) -> bytes:
    """Begin TLS, of which one part goes wrong, and say something in it. Returns what was sent."""
    sent = b""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    # The first, the second or the third part that is sent, all in between, or what comes before the first.
    wrong, parts = chance.choice((0, 0, 1, 1, 2, 3)), 0
    if wrong == 3 or chance.random() < 0.05:
        sent += mutate.mutated(chance, _BEFORE)
        channel.sendall(sent)
    with suppress(OSError):
        for step in (tls.do_handshake, lambda: tls.write(words())):
            over = False
            while not over:
                with suppress(ssl.SSLWantReadError):
                    step()
                    over = True
                if part := outgoing.read():
                    part = mutate.mutated(chance, [part]) if parts == wrong else part
                    parts += 1
                    sent += part
                    channel.sendall(part)
                if not over:
                    if not (piece := channel.recv(65536)):
                        return sent
                    incoming.write(piece)
        while channel.recv(65536):
            pass
    return sent


_BEFORE = [
    b"GET /_ping HTTP/1.1\r\nHost: a\r\n\r\n",
    frames.PREFACE,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40),
    b"\x15\x03\x03\x00\x02\x02\x28",
    b"\x80\x2e\x01\x00\x02",
]
