"""A daemon that is reached from afar: over TLS with certificates of their own, with every client."""

import re
from pathlib import Path

from docker import DockerClient
from docker.tls import TLSConfig

from tests.support.certificates import Authority, Pair
from tests.support.client import Client
from tests.support.daemon import Daemon

LOOPBACK = "127.0.0.1"


class Remote(Client):
    """The clients of a daemon's TLS listener, with one client certificate."""

    def __init__(self, daemon: Daemon, pair: Pair) -> None:
        super().__init__(daemon.directory)
        self.host = address(daemon)
        self.pair = pair

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(self.pair.directory)}

    def sdk(self, timeout: float = 60.0) -> DockerClient:
        tls = TLSConfig(client_cert=(self.pair.cert, self.pair.key), ca_cert=self.pair.ca, verify=True)
        return DockerClient(base_url=self.host, tls=tls, version="auto", timeout=int(timeout))


def tls_daemon(directory: Path, authority: Authority, *arguments: str, wrapper: tuple[str, ...] = ()) -> Daemon:
    """A daemon, to be started, that also listens on TLS for clients of this authority."""
    server = authority.issue("server", addresses=[LOOPBACK])
    return Daemon("-H", f"tcp://{LOOPBACK}:0", "--tlsverify", *server.flags, *arguments, wrapper=wrapper)


def address(daemon: Daemon) -> str:
    found = re.findall(r"Husk listens on (tcp://\S+)", daemon.log_path.read_text())
    assert found, "the daemon listens on no TCP address"
    return str(found[-1])
