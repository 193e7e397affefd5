"""The swarm's CA and the cluster port, with docker's own commands and a second daemon."""

import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.free_ports import free_port
from tests.support.waiting import until


@pytest.fixture
def manager(fresh_daemon: Daemon) -> Iterator[tuple[Daemon, str]]:
    """A swarm, and where its cluster port is."""
    address = f"127.0.0.1:{free_port()}"
    fresh_daemon.docker("swarm", "init", "--advertise-addr", "127.0.0.1", "--listen-addr", address)
    yield fresh_daemon, address
    if fresh_daemon.process is None:
        fresh_daemon.start()
    fresh_daemon.docker("swarm", "leave", "--force", check=False)


def root_of(address: str) -> bytes:
    """The certificate that the port shows, verified by the root that `docker swarm ca` shows."""
    host, port = address.split(":")
    return ssl.get_server_certificate((host, int(port))).encode()


def issuer_fits(shown: bytes, root: str, directory: Path) -> bool:
    (directory / "root").write_text(root)
    (directory / "cert").write_bytes(shown)
    verified = ["openssl", "verify", "-CAfile", str(directory / "root"), str(directory / "cert")]
    return subprocess.run(verified, capture_output=True, check=False).returncode == 0


def test_the_ca_is_shown_and_replaced(manager: tuple[Daemon, str], tmp_path: Path) -> None:
    daemon, address = manager
    first = daemon.docker("swarm", "ca").stdout
    assert first.startswith("-----BEGIN CERTIFICATE-----")
    assert issuer_fits(root_of(address), first, tmp_path)
    tokens = daemon.http("GET", "/swarm").json()["JoinTokens"]
    daemon.docker("swarm", "ca", "--rotate", "--quiet")
    said = daemon.docker("swarm", "ca").stdout
    assert said.startswith("-----BEGIN CERTIFICATE-----") and said != first
    after = daemon.http("GET", "/swarm").json()
    assert not after["RootRotationInProgress"] and after["TLSInfo"]["TrustRoot"].strip() == said.strip()
    assert after["JoinTokens"]["Worker"].split("-")[2] != tokens["Worker"].split("-")[2], "tokens name the new root"
    until(lambda: issuer_fits(root_of(address), said, tmp_path), "the port shows a certificate of the new root")
    daemon.restart()
    assert daemon.docker("swarm", "ca").stdout.strip() == said.strip()
    assert daemon.process is not None
    maps = Path(f"/proc/{daemon.process.pid}/maps")
    assert "cryptography" not in maps.read_text(), "nothing is loaded before somebody knocks"
    until(lambda: issuer_fits(root_of(address), said, tmp_path), "so does that of the next daemon")
    key = daemon.config.data_root / "swarm.node" / "node.key"
    assert key.stat().st_mode & 0o777 == 0o600 and b"PRIVATE" not in key.read_bytes()


def test_a_root_of_ones_own(manager: tuple[Daemon, str], tmp_path: Path) -> None:
    daemon, address = manager
    key, certificate = tmp_path / "own.key", tmp_path / "own.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "900",
    ]
    command += ["-subj", "/CN=own", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    daemon.docker("swarm", "ca", "--rotate", "-q", "--ca-cert", str(certificate), "--ca-key", str(key))
    said = daemon.docker("swarm", "ca").stdout
    assert said.strip() == certificate.read_text().strip()
    assert daemon.http("GET", "/swarm").json()["Spec"]["CAConfig"].get("SigningCAKey") is None
    until(lambda: issuer_fits(root_of(address), said, tmp_path), "it signs")


def test_joining(manager: tuple[Daemon, str], daemon: Daemon) -> None:
    """All that can be wrong is refused in Docker's words; test_workers.py and test_managers.py have those who are let
    in."""
    first, address = manager
    worker = first.docker("swarm", "join-token", "-q", "worker").stdout.strip()

    def refused(token: str, to: str = address) -> str:
        answer = daemon.docker("swarm", "join", "--token", token, to, check=False)
        assert answer.returncode == 1
        return answer.stderr

    assert "A valid join token is necessary to join this cluster" in refused(f"{worker[:-25]}{'0' * 25}")
    assert "remote CA does not match fingerprint. Expected: " in refused(f"SWMTKN-1-{'0' * 50}-{'0' * 25}")
    assert "invalid join token" in refused("x")
    assert "connect: connection refused" in refused(worker, f"127.0.0.1:{free_port()}")
    first.docker("swarm", "join-token", "--rotate", "-q", "worker")
    assert "A valid join token" in refused(worker)
    assert len(first.http("GET", "/nodes").json()) == 1
    assert daemon.http("GET", "/info").json()["Swarm"]["LocalNodeState"] == "inactive"
    assert "already part of a swarm" in first.docker("swarm", "join", "--token", worker, address, check=False).stderr


def test_a_locked_swarm_opens_its_port_when_it_is_unlocked(manager: tuple[Daemon, str]) -> None:
    daemon, address = manager
    said = daemon.docker("swarm", "update", "--autolock").stdout
    key = next(word for word in said.split() if word.startswith("SWMKEY-1-"))
    daemon.restart()
    with pytest.raises(ConnectionRefusedError):
        root_of(address)
    daemon.docker("swarm", "unlock", input=key)
    assert root_of(address)
    daemon.docker("swarm", "leave", "--force")
    assert not list(daemon.config.data_root.glob("swarm.*")), "neither key nor certificate is left"
    with pytest.raises(ConnectionRefusedError):
        root_of(address)


def test_a_port_that_another_program_has(manager: tuple[Daemon, str], daemon: Daemon) -> None:
    _, address = manager
    refused = daemon.http("POST", "/swarm/init", {"ListenAddr": address})
    assert refused.status == 500
    assert refused.message == (
        f"failed to listen on remote API address: listen tcp {address}: bind: address already in use"
    )
    assert daemon.http("GET", "/info").json()["Swarm"]["LocalNodeState"] == "inactive"
