"""A real sshd on loopback, with one key that may log in; it is gone afterwards.

    with sshd(directory) as server:
        ...                 # server.port, server.agent

Its user for the time before a login need not exist on the host: it runs in a mount namespace with users of its own.
"""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from tests.support.free_ports import free_port
from tests.support.waiting import wait_until

_PEERS = Path(__file__).resolve().parents[2] / ".venv/peers"
PROGRAM = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:{_PEERS}")
_START = """set -e
mount --bind "$1/passwd" /etc/passwd
mount -t tmpfs none /run
mkdir -m 755 /run/sshd
exec "$2" -D -e -f "$1/config"
"""


class SshServer(Struct, frozen=True):
    port: int
    agent: Path  # the socket of an agent that has the key


@contextmanager
def sshd(directory: Path) -> Iterator[SshServer]:
    for name in ("host", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)], check=True)
    port = free_port()
    users = Path("/etc/passwd").read_text()
    unprivileged = "" if "\nsshd:" in users else "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n"
    (directory / "passwd").write_text(users + unprivileged)
    (directory / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {directory}/host\nAuthorizedKeysFile {directory}/key.pub\n"
        "UsePAM no\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPidFile none\n"
        "PermitRootLogin prohibit-password\n"
    )
    socket_path = directory / "agent"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(_PEERS / "lib")}
    assert PROGRAM is not None
    server = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", _START, "sh", str(directory), PROGRAM],
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket_path)], stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: _listens(socket_path), "the agent")
        added = {**os.environ, "SSH_AUTH_SOCK": str(socket_path)}
        subprocess.run(["ssh-add", "-q", str(directory / "key")], env=added, check=True)
        wait_until(lambda: server.poll() is not None or _answers(port), "sshd")
        assert server.poll() is None, server.communicate()[1]
        yield SshServer(port, socket_path)
    finally:
        for process in (server, agent):
            process.terminate()
            process.communicate(timeout=10)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _listens(path: Path) -> bool:
    """A socket is there a moment before anybody may connect to it."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0
