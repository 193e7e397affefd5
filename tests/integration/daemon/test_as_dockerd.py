"""A link called `dockerd` to our program works with dockerd's command line, also under systemd's socket activation."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import unused_subnet
from tests.support.waiting import until

PROGRAM = Path(__file__).parents[3] / ".venv/bin/husk"


@pytest.fixture
def place() -> Iterator[Path]:
    """A short directory, with the link in it."""
    with tempfile.TemporaryDirectory(prefix="hd-", dir="/tmp") as name:
        (Path(name) / "dockerd").symlink_to(PROGRAM)
        yield Path(name)


@contextlib.contextmanager
def running(place: Path, *arguments: str, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    if os.geteuid() != 0:
        pytest.skip("needs root: it runs a daemon")
    own = [
        f"--data-root={place}/data",
        "--exec-root",
        f"{place}/run",
        f"--pidfile={place}/pid",
        "--bip",
        unused_subnet(),
    ]
    process = subprocess.Popen([place / "dockerd", *own, *arguments], stdin=subprocess.DEVNULL, **options)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(40)


def ping(path: Path) -> bool:
    connection = http.client.HTTPConnection("localhost", timeout=20)
    with contextlib.closing(connection), socket.socket(socket.AF_UNIX) as connection.sock:
        try:
            connection.sock.connect(str(path))
        except OSError:
            return False
        connection.request("GET", "/_ping")
        return connection.getresponse().read() == b"OK"


def test_dockerds_command_line(place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: it runs a daemon")
    (place / "daemon.json").write_text('{"live-restore": true, "storage-driver": "overlay2", "log-level": "warn"}')
    with running(
        place,
        *("-H", f"unix://{place}/s", "--config-file", f"{place}/daemon.json", "--containerd=/run/containerd.sock"),
        *("--iptables=false", "--userland-proxy=false", "--label", "a=b", "--default-ulimit", "nofile=100:200"),
        *("--log-opt", "max-size=1m", "--icc=false", "-G", "root", "--dns", "192.0.2.1,192.0.2.2"),
    ):
        until(lambda: ping(place / "s"), "the daemon")
        assert (place / "pid").exists()
    assert not (place / "pid").exists()


def test_it_says_who_it_is_and_validates(place: Path) -> None:
    told = subprocess.run([place / "dockerd", "--version"], capture_output=True, text=True)
    assert told.returncode == 0 and told.stdout.startswith("husk ")
    for flag in ("--help", "-h"):
        helped = subprocess.run([place / "dockerd", flag], capture_output=True, text=True)
        assert helped.returncode == 0 and "--tlsverify" in helped.stdout
    (place / "daemon.json").write_text('{"mtu": "1500"}')
    command = [str(place / "dockerd"), "--validate", "--config-file", f"{place}/daemon.json"]
    wrong = subprocess.run(command, capture_output=True, text=True)
    assert wrong.returncode == 1
    where = f"with file {place}/daemon.json"
    assert wrong.stderr == f"dockerd: unable to configure the daemon {where}: mtu: expected `int`, got `str`\n"
    (place / "daemon.json").write_text('{"mtu": 1500}')
    right = subprocess.run(command, capture_output=True, text=True)
    assert (right.returncode, right.stderr) == (0, "configuration OK\n")
    both = subprocess.run([*command, "--mtu", "1400"], capture_output=True, text=True)
    assert (
        "specified both as a flag and in the configuration file: mtu: (from flag: 1400, from file: 1500)" in both.stderr
    )


def activated(place: Path, held: socket.socket, *arguments: str) -> subprocess.Popen[str]:
    """The daemon with the socket as systemd passes it: as descriptor 3, and the variables name who gets it."""
    (place / "daemon.json").write_text("{}")
    start = (
        "import os, sys; os.dup2(int(sys.argv[1]), 3); os.set_inheritable(3, True); "
        "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1'); os.execv(sys.argv[2], sys.argv[2:])"
    )
    wrapper = place / "wrapped"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{start}" {held.fileno()} {place}/dockerd "$@"\n')
    wrapper.chmod(0o755)
    own = [f"--data-root={place}/data", f"--exec-root={place}/run", f"--pidfile={place}/pid", "--bip", unused_subnet()]
    return subprocess.Popen(
        [wrapper, *own, "-H", "fd://", "--config-file", f"{place}/daemon.json", *arguments],
        pass_fds=[held.fileno()],
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_port_that_systemd_opened_to_others_takes_a_word_that_it_is_meant(place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: it runs a daemon")
    with socket.create_server(("0.0.0.0", 0)) as held:
        address = f"tcp://0.0.0.0:{held.getsockname()[1]}"
        refused = activated(place, held)
        told = refused.communicate(timeout=60)[1]
        assert refused.returncode == 1 and f"{address} without --tlsverify would make everybody root" in told
        meant = activated(place, held, "--tls=false")
        try:
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", held.getsockname()[1], 60)) as client:
                client.request("GET", "/_ping")
                assert client.getresponse().read() == b"OK"
        finally:
            meant.send_signal(signal.SIGTERM)
            told = meant.communicate(timeout=60)[1]
        assert f"listening on {address} without --tlsverify" in told


def test_it_takes_the_sockets_that_systemd_holds(place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: it runs a daemon")
    with socket.socket(socket.AF_UNIX) as held:
        held.bind(str(place / "s"))
        held.listen()
        process = activated(place, held)
        try:
            until(lambda: ping(place / "s"), "an answer on the socket")
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
        assert (place / "s").exists(), "the socket is systemd's"


@pytest.mark.skipif(shutil.which("systemd-socket-activate") is None, reason="no systemd here")
def test_systemd_starts_it_with_the_first_client(place: Path) -> None:
    """As the units of `husk install` have it: no word of descriptors, the path of the socket is in the settings."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it runs a daemon")
    (place / "daemon.json").write_text(json.dumps({"hosts": [f"unix://{place}/s"]}))
    own = [f"--data-root={place}/data", f"--exec-root={place}/run", f"--pidfile={place}/pid", "--bip", unused_subnet()]
    command = ["systemd-socket-activate", "-l", f"{place}/s", f"{place}/dockerd", *own]
    process = subprocess.Popen([*command, f"--config-file={place}/daemon.json"], stderr=subprocess.DEVNULL)
    try:
        until(lambda: (place / "s").exists(), "systemd's socket")
        assert not (place / "pid").exists(), "nobody has asked for it yet"
        until(lambda: ping(place / "s"), "an answer on the socket")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
    assert (place / "s").exists(), "the socket is systemd's"


def test_without_systemd_there_are_no_sockets(place: Path) -> None:
    (place / "daemon.json").write_text("{}")
    own = [f"--data-root={place}/data", f"--exec-root={place}/run", f"--pidfile={place}/pid", "--bip", unused_subnet()]
    command = [str(place / "dockerd"), *own, "-H", "fd://", "--config-file", f"{place}/daemon.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "no sockets found for fd://" in done.stderr
