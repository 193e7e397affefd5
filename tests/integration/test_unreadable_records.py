"""One record of every kind cannot be read: it is put aside and told, nothing of it is touched, and the rest works."""

import contextlib
import json
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.daemon import Daemon
from tests.support.doctor import _SOURCES, check_store
from tests.support.registry import tar_of
from tests.support.swarm import Swarm
from tests.support.waiting import until

GARBAGE = (b"", b"{", b"\xff\xfe", b"[1]", b"{}")


def database(daemon: Daemon) -> contextlib.closing[sqlite3.Connection]:
    return contextlib.closing(sqlite3.connect(daemon.config.data_root / "state.db", isolation_level=None))


def garble(daemon: Daemon, kind: str, key: str, body: bytes) -> None:
    with database(daemon) as state:
        state.execute("UPDATE document SET body = ? WHERE kind = ? AND key = ?", (body, kind, key))


def keys(daemon: Daemon, kind: str) -> dict[str, bytes]:
    with database(daemon) as state:
        return dict(state.execute("SELECT key, body FROM document WHERE kind = ?", (kind,)).fetchall())


def works(daemon: Daemon) -> None:
    """Use the things that are not garbled, and make new ones."""
    assert daemon.docker("run", "--rm", "-v", "fresh:/data", "busybox", "echo", "hi").stdout == "hi\n"
    daemon.docker("network", "create", "fresh")
    assert daemon.docker("run", "--rm", "--network", "fresh", "busybox", "echo", "hi").stdout == "hi\n"
    daemon.docker("network", "rm", "fresh")
    daemon.docker("volume", "rm", "fresh")


def doctor(daemon: Daemon) -> str:
    command = [sys.executable, "-m", "husk", "doctor", "--data-root", str(daemon.config.data_root)]
    environment = {**os.environ, "PYTHONPATH": str(_SOURCES)}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/", env=environment).stdout


def test_a_garbled_record_of_every_kind(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    daemon.http("POST", "/images/create?fromSrc=-&repo=app&tag=1", tar_of({"hello": b"hello\n"}))
    daemon.docker("run", "--name", "box", "-v", "data:/data", "busybox", "sh", "-c", "echo kept | tee /data/file /file")
    daemon.docker("network", "create", "net")
    daemon.docker("volume", "create", "other")
    box = json.loads(daemon.docker("inspect", "box").stdout)[0]["Id"]
    net = daemon.docker("network", "inspect", "-f", "{{.Id}}", "net").stdout.strip()
    app = daemon.docker("images", "-q", "--no-trunc", "app:1").stdout.strip()
    (diff,) = json.loads(daemon.docker("image", "inspect", "app:1").stdout)[0]["RootFS"]["Layers"]
    targets = {"container": box, "network": net, "volume": "data", "image": app, "layer": diff}
    targets["image-name"] = "docker.io/library/app:1"
    originals = {}
    daemon.stop()
    for number, (kind, key) in enumerate(targets.items()):
        originals[kind] = keys(daemon, kind)[key]
        garble(daemon, kind, key, GARBAGE[number % len(GARBAGE)] if kind != "image-name" else b"\xff\xfe")
    told = doctor(daemon)
    daemon.start()
    for kind, key in targets.items():
        assert f"the record of {kind} {key} cannot be read and is put aside" in daemon.log(1000)
        assert f"{kind} {key}" in told
    assert daemon.http("GET", f"/containers/{box}/json").status == 404
    assert daemon.http("POST", "/volumes/create", {"Name": "data"}).status == 409
    assert daemon.http("POST", "/volumes/prune").status == 409
    works(daemon)
    live = check_store(daemon).stdout
    assert all(key in live for key in targets.values()), live
    daemon.restart()
    daemon.stop()
    for kind, key in targets.items():
        garble(daemon, kind, key, originals[kind])
    daemon.start()
    # All is back as if nothing had been: nobody took away what the records name.
    assert daemon.docker("start", "-a", "box").stdout == "kept\n"
    assert daemon.docker("cp", "box:/file", "-").returncode == 0
    created = daemon.http("POST", "/containers/create", {"Image": "app:1", "Cmd": ["/hello"]}).json()["Id"]
    assert daemon.http("GET", f"/containers/{created}/archive?path=/hello").status == 200
    daemon.docker("network", "rm", "net")


@pytest.fixture(scope="module")
def swarm() -> Iterator[Swarm]:
    """A swarm with one of everything, and two services."""
    with Daemon() as daemon:
        swarm = Swarm(daemon)
        daemon.docker("swarm", "init", "--advertise-addr", "127.0.0.1")
        daemon.docker("secret", "create", "word", "-", input="hush")
        daemon.docker("config", "create", "conf", "-", input="text")
        for name in ("web", "api"):
            swarm.create(name, "--network", "host")
            swarm.settles(name, 1)
        yield swarm
        daemon.docker("swarm", "leave", "--force")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it runs real containers")
@pytest.mark.parametrize("kind", ["swarm", "service", "task", "secret", "config", "image-family", "packed-layer"])
def test_a_garbled_record_of_a_swarm_or_of_what_can_be_made_again(swarm: Swarm, kind: str) -> None:
    daemon = swarm.daemon
    before = swarm.settles("web", 1)
    swarm.settles("api", 1)
    daemon.stop()
    found = keys(daemon, kind)
    if kind in ("image-family", "packed-layer"):
        with database(daemon) as state:
            state.execute("INSERT INTO document (kind, key, body) VALUES (?, 'sha256:00', '{')", (kind,))
        found = {"sha256:00": b"{"}
    of_web = [key for key, body in found.items() if kind == "service" and b'"web"' in body]
    key = of_web[0] if of_web else next(iter(found))
    original = found[key]
    garble(daemon, kind, key, b"{")
    daemon.start()
    assert f"the record of {kind} {key} cannot be read and is put aside" in daemon.log(1000)
    works(daemon)
    if kind in ("swarm", "service"):
        assert swarm.containers("web") == before
    if kind == "swarm":
        refused = daemon.docker("swarm", "init", check=False)
        assert "cannot be read" in refused.stderr
    daemon.stop()
    garble(daemon, kind, key, original)
    daemon.start()
    assert {service["Spec"]["Name"] for service in daemon.http("GET", "/services").json()} == {"web", "api"}


def test_a_container_that_runs_keeps_its_network_though_its_record_cannot_be_read(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    serving = "while true; do nc -l -p 80 -e echo hi; done"
    box = daemon.docker("run", "-d", "--name", "box", "busybox", "sh", "-c", serving).stdout.strip()
    address = daemon.docker("inspect", "-f", "{{.NetworkSettings.IPAddress}}", "box").stdout.strip()
    original = keys(daemon, "container")[box]
    daemon.stop()
    garble(daemon, "container", box, b"{")
    daemon.start()
    daemon.restart()  # neither the first daemon that cannot read it nor the next
    assert answer_of(address) == b"hi\n"
    addresses = [daemon.docker("run", "--rm", "busybox", "hostname", "-i").stdout.strip() for _ in range(3)]
    assert address not in addresses
    daemon.stop()
    garble(daemon, "container", box, original)
    daemon.start()
    assert daemon.docker("inspect", "-f", "{{.State.Running}}", "box").stdout == "true\n"
    assert answer_of(address) == b"hi\n"
    daemon.docker("rm", "-f", "box")


def answer_of(address: str) -> bytes:
    """Return what the container sends, once it listens again."""

    def asked() -> bytes:
        try:
            with socket.create_connection((address, 80), timeout=5) as connection:
                return connection.recv(10)
        except ConnectionRefusedError:
            return b""

    return until(asked, "it listens again")
