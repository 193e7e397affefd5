"""A whole daemon is fed through each of its doors, in a network namespace of its own, and judged by `watch`."""

import os
import random
import socket
import ssl
import time
from collections.abc import Generator
from contextlib import closing, suppress
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Protocol

import pytest

from husk.swarm.ca.holders import MANAGER_NAME
from tests.fuzz import archives, cluster, disk, requests, wires
from tests.fuzz.lying import LyingRegistry
from tests.fuzz.requests import NAMES, Sent
from tests.fuzz.test_parsers import SECONDS
from tests.fuzz.watch import Watch
from tests.support.certificates import Authority, Pair
from tests.support.daemon import Daemon
from tests.support.remote import LOOPBACK, address, tls_daemon

# For each door.
_SHARE = SECONDS / 8
_APART = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
# How long anybody waits for an answer that is none of a stream's, and for the next piece of one.
_PATIENCE, _STREAM = 20.0, 0.5
# Inputs until what they have made is removed, and what they have removed made again.
_ROUND = 40


class Bench:
    """A daemon with a few things in it, and the ways to feed it."""

    def __init__(self, daemon: Daemon, chance: random.Random) -> None:
        self.daemon = daemon
        self.chance = chance
        self.place = str(daemon.directory / "host")
        self.names = list(NAMES)
        # Their first use loads much.
        for path in ("/nodes", "/services"):
            daemon.http("GET", path)
        self._busybox = daemon.http("GET", "/images/busybox/get").body
        self.again()
        self.watch = Watch(daemon)

    def again(self) -> None:
        """Bring the daemon back to what `NAMES` says."""
        daemon = self.daemon
        listed = daemon.http("GET", "/containers/json?all=1").json()
        for each in listed if len(listed) > 8 else ():
            daemon.http("DELETE", f"/containers/{each['Id']}?force=1&v=1")
        if daemon.http("GET", "/images/busybox:latest/json").status == 404:
            daemon.http("POST", "/images/load", self._busybox, {"Content-Type": "application/x-tar"})
        daemon.http("POST", "/networks/create", {"Name": "net"})
        daemon.http("POST", "/volumes/create", {"Name": "vol"})
        wanted = {"Image": "busybox", "Cmd": ["sleep", "1000"], "OpenStdin": True, "StopSignal": "SIGKILL"}
        daemon.http("POST", "/containers/create?name=idle", wanted)
        daemon.http("POST", "/containers/create?name=web", wanted)
        daemon.http("POST", "/containers/web/unpause")
        daemon.http("POST", "/containers/web/start")
        made = daemon.http("POST", "/containers/web/exec", {"Cmd": ["cat"], "AttachStdin": True, "AttachStdout": True})
        self.names = [*NAMES, *([made.json()["Id"]] if made.status == 201 else [])]

    def ask(self, sent: Sent) -> None:
        """Send one request, and judge."""
        status, said = 0, b""
        waits = sent.stream or sent.method != "GET"
        with closing(self.daemon.connection(_STREAM if waits else _PATIENCE)) as connection:
            try:
                connection.request(sent.method, sent.target, sent.body, sent.headers)
                response = connection.getresponse()
                status = response.status
                said = response.read(1 << 20) if not sent.stream or status >= 400 else response.read1(1 << 20)
            except TimeoutError:
                if not waits:
                    self.watch.wrong(f"no answer to {sent}")
            except (OSError, HTTPException, ValueError):
                pass  # it is no request, or the daemon thinks so
        self.watch.after(str(sent), status, said)

    def tell(self, data: bytes) -> None:
        """Send bytes, and judge."""
        said = b""
        with self.daemon.raw(timeout=_STREAM) as channel, suppress(OSError):
            channel.sendall(data)
            if self.chance.random() < 0.5:
                channel.shutdown(socket.SHUT_WR)
            while len(said) < 1 << 20 and (piece := channel.recv(65536)):
                said += piece
        self.watch.after(repr(data[:6000]), 500 if b"HTTP/1.1 500" in said else 0, said)


class Door(Protocol):
    def __call__(self, bench: Bench, chance: random.Random) -> Generator[None]:
        """Send one input after the other, without end."""


def _requests(bench: Bench, chance: random.Random) -> Generator[None]:
    while True:
        bench.ask(requests.request(chance, bench.place, bench.names))
        yield


def _http1(bench: Bench, chance: random.Random) -> Generator[None]:
    while True:
        bench.tell(wires.http1(chance))
        yield


def _calls(bench: Bench, chance: random.Random) -> Generator[None]:
    while True:
        bench.tell(wires.calls(chance))
        yield


def _archives(bench: Bench, chance: random.Random) -> Generator[None]:
    while True:
        bench.ask(archives.request(chance, bench.names))
        yield


def _registry(bench: Bench, chance: random.Random) -> Generator[None]:
    with closing(LyingRegistry(bench.daemon.pid, chance)) as registry:
        while True:
            registry.next(chance)
            name = f"{registry.host}/app"
            method, target = chance.choice(
                [("POST", f"/images/create?fromImage={name}&tag=1")] * 4
                + [("GET", f"/distribution/{name}:1/json"), ("POST", f"/images/{name}/push?tag=1")]
            )
            bench.daemon.http("POST", f"/images/busybox/tag?repo={name}&tag=1")
            bench.ask(Sent(method, target, {"X-Registry-Auth": "e30="}, None, stream=method == "POST"))
            yield


def _cluster(bench: Bench, chance: random.Random) -> Generator[None]:
    swarm = cluster.Swarm(bench.daemon)
    bench.watch.restarted()
    while True:
        if bench.watch.count % _ROUND == 0:
            swarm.again()
        words = swarm.words(chance)
        said = swarm.tell(swarm.caller(chance), words)
        bench.watch.after(repr(words[:6000]), 0, said)
        yield


def _tls(bench: Bench, chance: random.Random, pair: Pair) -> Generator[None]:
    """The cluster port's, and the API's."""
    swarm = cluster.Swarm(bench.daemon)
    bench.watch.restarted()
    port = int(address(bench.daemon).rpartition(":")[2])
    api = ssl.create_default_context(cafile=pair.ca)
    api.load_cert_chain(pair.cert, pair.key)
    while True:
        own = chance.random() < 0.5
        with closing(cluster.reached(bench.daemon, port if own else cluster.PORT)) as channel:
            channel.settimeout(_STREAM)
            if own:
                sent = cluster.shake(chance, channel, api, LOOPBACK, partial(wires.http1, chance))
            else:
                sent = cluster.shake(chance, channel, swarm.caller(chance), MANAGER_NAME, partial(swarm.words, chance))
        bench.watch.after(repr(sent[:6000]))
        yield


def _disk(bench: Bench, chance: random.Random) -> Generator[None]:
    daemon = bench.daemon
    while True:
        daemon.kill9()
        shown = [disk.damage(chance, daemon.config.data_root) for _ in range(chance.choice((1, 1, 3)))]
        daemon.start()
        bench.watch.restarted()
        bench.watch.after("; ".join(shown))
        for path in (
            "/info",
            "/system/df",
            "/images/json?all=1",
            "/networks",
            "/volumes",
            "/containers/json?all=1&size=1",
        ):
            bench.ask(Sent("GET", path, {}, None, stream=False))
        for path in (
            "/containers/web/json",
            "/containers/web/logs?stdout=1&stderr=1&timestamps=1",
            "/containers/idle/json",
        ):
            bench.ask(Sent("GET", path, {}, None, stream=False))
        yield


DOORS: dict[str, Door] = {
    "requests": _requests, "HTTP/1": _http1, "calls": _calls, "archives": _archives, "registry": _registry,
    "cluster port": _cluster,
}  # fmt: skip


@pytest.mark.timeout(_SHARE + 240)
@pytest.mark.parametrize("door", DOORS)
def test_a_daemon_lives_with_what_comes(door: str, chance: random.Random) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: it runs real containers")
    with Daemon(wrapper=_APART) as daemon:
        bench = Bench(daemon, chance)
        feed(bench, DOORS[door], _SHARE)
        bench.watch.clean()


@pytest.mark.timeout(_SHARE + 240)
def test_a_daemon_lives_with_tls_that_goes_wrong(tmp_path: Path, chance: random.Random) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: it runs real containers")
    certificates = Authority(tmp_path)
    with tls_daemon(tmp_path, certificates, wrapper=_APART) as daemon:
        bench = Bench(daemon, chance)
        feed(bench, partial(_tls, pair=certificates.issue("client")), _SHARE)
        bench.watch.clean()


@pytest.mark.timeout(_SHARE + 240)
def test_a_daemon_starts_with_what_its_disk_has(chance: random.Random) -> None:
    """The things of a record that cannot be read are left alone, so something is left here."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it runs real containers")
    daemon = Daemon()
    try:
        daemon.start()
        feed(Bench(daemon, chance), _disk, _SHARE)
    finally:
        daemon.close()


def feed(bench: Bench, door: Door, seconds: float) -> None:
    end = time.monotonic() + seconds
    with closing(door(bench, bench.chance)) as inputs:
        for number, _ in enumerate(inputs, 1):
            if time.monotonic() >= end:
                break
            if number % _ROUND == 0:
                bench.again()
    print(f"{bench.watch.count} inputs")
