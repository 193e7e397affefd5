"""Real etcd for tests: one member, or several that are a cluster, each on a loopback address of its own.

    with Etcd(directory) as etcd:
        store = EtcdStore.open(etcd.address)

A member is a process that can be killed, stopped and started again on the same data.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tests.support.certificates import Authority, Pair
from tests.support.hosts import Host
from tests.support.server import Server
from tests.support.waiting import until

CLIENT_PORT, PEER_PORT = 2379, 2380


class Member:
    def __init__(self, directory: Path, number: int, tls: Authority | None, on: Host | None = None) -> None:
        # Nobody else has these ports on it, nor need any be looked for.
        self.host = on.address if on else f"127.{random.randint(1, 254)}.{random.randint(1, 254)}.{number + 1}"
        self._on = on
        self.name = f"m{number}"
        self._directory = directory / self.name
        self._directory.mkdir(parents=True)
        self._certificate = tls.issue(f"server-{self.name}", [self.host], both=True) if tls is not None else None
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def peer(self) -> str:
        return f"http://{self.host}:{PEER_PORT}"

    @property
    def _metrics(self) -> str:
        # Without TLS, for those who wait for it.
        return f"http://{self.host}:2381"

    def start(self, cluster: Sequence["Member"]) -> None:
        url = f"{'https' if self._certificate else 'http'}://{self.host}:{CLIENT_PORT}"
        settings = {
            "name": self.name,
            "data-dir": str(self._directory / "data"),
            "listen-client-urls": url,
            "advertise-client-urls": url,
            "listen-peer-urls": self.peer,
            "initial-advertise-peer-urls": self.peer,
            "initial-cluster": ",".join(f"{member.name}={member.peer}" for member in cluster),
            "listen-metrics-urls": self._metrics,
            "heartbeat-interval": "50",
            "election-timeout": "500",
            # Tests end processes, not machines.
            "unsafe-no-fsync": None,
        }
        if self._certificate is not None:
            settings |= {"client-cert-auth": None, "trusted-ca-file": self._certificate.ca}
            settings |= {"cert-file": self._certificate.cert, "key-file": self._certificate.key}
        program = shutil.which("etcd")
        assert program is not None, "etcd is missing: scripts/setup --test takes it out of its package"
        # Version 3.4 knows no `unsafe-no-fsync`.
        known = subprocess.run([program, "--help"], capture_output=True, text=True).stdout
        flags = [f"--{key}" if value is None else f"--{key}={value}" for key, value in settings.items() if key in known]
        enter = self._on.enter if self._on is not None else ()
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen([*enter, program, *flags], stdout=log, stderr=log, start_new_session=True)

    def healthy(self) -> bool:
        """Tell if it answers, with a leader."""
        assert self._process is not None and self._process.poll() is None, self.log()
        return self._answers() if self._on is None else self._on.inside(self._answers)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._metrics}/health", timeout=2) as answer:
                return json.load(answer)["health"] in ("true", True)
        except (OSError, ValueError, urllib.error.URLError):
            return False

    def log(self) -> str:
        return (self._directory / "log").read_text()[-4000:]

    def kill(self) -> None:
        """kill -9: it loses nothing, and says nothing."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def freeze(self) -> None:
        """Stop all its threads: it is there, and does nothing, as a host that hangs."""
        os.killpg(self.pid, signal.SIGSTOP)
        # The signal stops the others when one thread has taken it: on a busy machine they may answer until then.
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)


class Etcd(Server):
    def __init__(
        self, directory: Path, members: int = 1, tls: bool = False, on: Sequence[Host | None] = (None,)
    ) -> None:
        """`on` are the hosts that have a member each; without, they are on this one."""
        self._authority = Authority(directory / "tls") if tls else None
        self.members = [Member(directory, number, self._authority, on[number % len(on)]) for number in range(members)]

    @property
    def address(self) -> str:
        return "etcd://" + ",".join(member.host for member in self.members)

    def client_certificate(self, name: str = "client") -> Pair:
        assert self._authority is not None
        return self._authority.issue(name)

    def start(self) -> None:
        for member in self.members:
            member.start(self.members)
        for member in self.members:
            until(member.healthy, "a healthy etcd")

    def restart(self, *members: Member) -> None:
        """Kill these and start them again on their data."""
        for member in members:
            member.kill()
        for member in members:
            member.start(self.members)
        for member in members:
            until(member.healthy, "a healthy etcd")

    def close(self) -> None:
        for member in self.members:
            member.kill()
