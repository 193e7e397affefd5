"""Docker's own daemon for tests, to compare and to exchange images with: everything its own, gone afterwards.

    with Dockerd() as dockerd:
        dockerd.docker("load", "-i", "saved-by-husk.tar")

It changes no firewall and leaves the host's `docker0` alone: its default network is on a bridge made for it.
"""

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from tests.support.client import Client
from tests.support.daemon import unused_subnet
from tests.support.server import Server

_DEADLINE = 60.0
_PROGRAMS = ("dockerd", "containerd", "containerd-shim-runc-v2", "runc")
# Where `scripts/setup --test` puts the programs of Debian's packages without installing them.
_PEERS = Path(__file__).resolve().parents[2] / ".venv/peers"
# A directory with another dockerd, and what it starts.
_CHOSEN = os.environ.get("HUSK_TEST_DOCKERD", "")
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:{_PEERS}"


class Dockerd(Server, Client):
    """A running dockerd; it starts and ends its containerd itself."""

    def __init__(self, programs: Path | None = None, *, containerd_store: bool = False) -> None:
        """`programs` is a directory with a dockerd of one's own choice, and what it starts.

        With `containerd_store` it keeps images in containerd, and its builder can do all that BuildKit can.
        """
        self._features = {"containerd-snapshotter": containerd_store}
        super().__init__(Path(tempfile.mkdtemp(prefix="dk-", dir="/tmp")))
        self.subnet = unused_subnet()
        self._bridge = f"dk-{secrets.token_hex(4)}"
        self._path = ":".join(filter(None, (str(programs or _CHOSEN), _PATH)))
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def available() -> bool:
        return not Dockerd.missing()

    @staticmethod
    def missing() -> str:
        """Return the reason why dockerd cannot run here; empty where it can."""
        if os.geteuid() != 0:
            return "needs root: it runs a real dockerd"
        absent = [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]
        return f"no {', '.join(absent)} on PATH or in .venv/peers (scripts/setup --test)" if absent else ""

    def start(self) -> None:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("address", "add", self.subnet, "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        command = [
            shutil.which("dockerd", path=self._path) or "dockerd",
            "-H",
            self.host,
            "--data-root",
            f"{self.directory}/data",
        ]
        command += ["--exec-root", f"{self.directory}/run", "--pidfile", f"{self.directory}/pid"]
        command += ["--bridge", self._bridge, "--iptables=false", "--ip6tables=false", "--ip-forward=false"]
        (self.directory / "daemon.json").write_text(json.dumps({"features": self._features}))
        command += ["--config-file", str(self.directory / "daemon.json")]
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={**os.environ, "PATH": self._path, "LD_LIBRARY_PATH": str(_PEERS / "lib")},
            )
        deadline = time.monotonic() + _DEADLINE
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"dockerd did not start:\n{self.log()}")
            time.sleep(0.05)

    def close(self) -> None:
        """End it with its containers and all its children, and take everything of it from the host."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        for pid in self._left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for mount in sorted(self._mounts(), reverse=True):
            subprocess.run(["umount", "-l", mount], check=False)
        subprocess.run(["ip", "link", "delete", self._bridge], capture_output=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _left(self) -> list[int]:
        """Processes with its directory in their command line: containerd and its shims."""
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdecimal():
                with contextlib.suppress(OSError):
                    if os.fsencode(f"{self.directory}/") in Path("/proc", entry, "cmdline").read_bytes():
                        found.append(int(entry))
        return found

    def _mounts(self) -> list[str]:
        lines = Path("/proc/self/mounts").read_text().splitlines()
        return [point for line in lines if (point := line.split()[1]).startswith(f"{self.directory}/")]


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
