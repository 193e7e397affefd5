import socket
import ssl
import stat
import threading
import time
from pathlib import Path

import pytest

from husk.swarm.ca import authority
from husk.swarm.ca.authority import Root, Signer
from husk.swarm.ca.holders import MANAGER_NAME, Holder, Role, holder_of
from husk.swarm.ca.identity import (
    CERTIFICATE,
    KEY,
    NEXT_KEY,
    ROOTS,
    Identity,
    IdentityFiles,
    forget,
    joining_context,
)

SEAL = bytes.swapcase


@pytest.fixture(scope="module")
def root() -> Root:
    return authority.new_root(time.time())


def identity(root: Root, role: Role = "manager", node: str = "n") -> Identity:
    key, request = authority.new_request()
    chain = authority.issue(request, Holder(node, role, "s"), Signer(root), 3600, time.time())
    return Identity(root.certificate, chain, key)


def files(directory: Path) -> IdentityFiles:
    return IdentityFiles(directory / "own", SEAL, SEAL, authority.fits)


def test_it_is_kept_and_its_key_is_sealed(tmp_path: Path, root: Root) -> None:
    kept = files(tmp_path)
    assert kept.load() is None
    mine = identity(root)
    kept.save(mine)
    assert files(tmp_path).load() == mine
    key = tmp_path / "own" / KEY
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and b"PRIVATE KEY" not in key.read_bytes()
    assert sorted(path.name for path in (tmp_path / "own").iterdir()) == ["node.crt", "node.key", "roots.crt"]
    forget(tmp_path / "own")
    forget(tmp_path / "own")
    assert kept.load() is None and not (tmp_path / "own").exists()


@pytest.mark.parametrize("steps", range(5))
def test_a_crash_while_it_is_renewed_leaves_the_old_or_the_new(
    tmp_path: Path, root: Root, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = identity(root), identity(root)
    kept = files(tmp_path)
    kept.save(old)
    written: list[str] = []
    write = kept._write

    def some(name: str, content: bytes) -> None:
        if len(written) == steps:
            raise KeyboardInterrupt
        written.append(name)
        write(name, content)

    monkeypatch.setattr(kept, "_write", some)
    if steps < 4:
        with pytest.raises(KeyboardInterrupt):
            kept.save(new)
    else:
        kept.save(new)
    assert files(tmp_path).load() == (new if steps > 2 else old)
    assert (tmp_path / "own" / NEXT_KEY).exists() == (0 < steps < 3), "the one that counts is in its place"


def met(server: ssl.SSLContext, client: ssl.SSLContext, name: str = MANAGER_NAME) -> object:
    """Return what the server knows of the client, or why the one or the other left."""
    ours, theirs = socket.socketpair()
    found: list[object] = []

    def serve() -> None:
        try:
            with server.wrap_socket(theirs, server_side=True) as peer:
                found.append(peer.getpeercert())
                peer.sendall(b"x")
                assert peer.version() == "TLSv1.3"
        except OSError as error:
            found.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(ours, server_hostname=name) as peer:
            peer.recv(1)
    except OSError as error:
        thread.join()
        return error
    thread.join()
    return found[0]


def test_nodes_know_each_other(root: Root) -> None:
    manager, worker = identity(root), identity(root, "worker", "w")
    seen = met(manager.server_context(), worker.client_context())
    assert isinstance(seen, dict) and holder_of(seen) == Holder("w", "worker", "s")


def test_who_has_no_certificate_yet_is_nobody(root: Root) -> None:
    manager = identity(root)
    assert met(manager.server_context(), joining_context(root.certificate)) is None
    assert met(manager.server_context(), joining_context(None)) is None


def test_a_worker_is_not_taken_for_a_manager(root: Root) -> None:
    fault = met(identity(root, "worker").server_context(), identity(root, "worker").client_context())
    assert isinstance(fault, ssl.SSLCertVerificationError)


def test_another_swarm_is_not_believed(root: Root) -> None:
    other = authority.new_root(time.time())
    assert isinstance(met(identity(other).server_context(), identity(root).client_context()), ssl.SSLError)
    assert isinstance(met(identity(other).server_context(), joining_context(root.certificate)), ssl.SSLError)
    stranger = identity(other, "worker")._replace(roots=root.certificate)
    assert isinstance(met(identity(root).server_context(), stranger.client_context()), ssl.SSLError)


def test_old_tls_is_not_spoken(root: Root) -> None:
    old = joining_context(root.certificate)
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert isinstance(met(identity(root).server_context(), old), ssl.SSLError)


@pytest.mark.parametrize("name", [ROOTS, CERTIFICATE, KEY])
@pytest.mark.parametrize("left", [b"", b"\xff\xfe", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_what_the_disk_has_damaged_is_as_good_as_gone(tmp_path: Path, root: Root, name: str, left: bytes) -> None:
    kept = files(tmp_path)
    kept.save(identity(root))
    (tmp_path / "own" / name).write_bytes(left)
    assert kept.load() is None
    kept.save(identity(root))
    assert kept.load() is not None
