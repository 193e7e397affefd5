"""Engines to measure side by side: Husk from this tree, and dockerd and podman where they are installed.

Each runs on a socket and directories of its own below a temporary directory, gets the same busybox image, and is gone
afterwards. Used by the other scripts here.
"""

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
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).resolve().parents[1] / "src"
IMAGE = "busybox:latest"


class Engine:
    """One running engine: its name, its socket, and the processes that are its cost."""

    def __init__(self, name: str, directory: Path, command: list[str], environment: dict[str, str]) -> None:
        self.name = name
        self.directory = directory
        self.socket = directory / "s"
        self.log = (directory / "log").open("wb")
        self.process = subprocess.Popen(
            command, stdout=self.log, stderr=self.log, env={**os.environ, **environment}, start_new_session=True
        )

    def connection(self) -> "UnixConnection":
        return UnixConnection(self.socket)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.connection().call("GET", "/_ping")[0] == 200:
                    return
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{self.name} did not start: see {self.directory / 'log'}")
            time.sleep(0.02)

    def pss(self) -> float:
        """MiB of all processes that belong to the engine: its session, its monitors and shims."""
        total = 0
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                mine = os.getsid(int(entry.name)) == self.process.pid or str(self.directory) in command
                program = Path(os.readlink(entry / "exe")).name
                if mine and program not in ("docker", "busybox"):
                    rollup = (entry / "smaps_rollup").read_text()
                    total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
        return total / 1024

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        self.process.kill()
        self.process.wait()
        self.log.close()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=120)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))

    def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> tuple[int, Any]:
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        self.request(method, path, data, {"Content-Type": content_type} if data is not None else {})
        response = self.getresponse()
        answer = response.read()
        if response.status >= 400:
            raise http.client.HTTPException(f"{method} {path}: {response.status} {answer.decode(errors='replace')}")
        try:
            return response.status, json.loads(answer)
        except ValueError:
            return response.status, answer


@contextlib.contextmanager
def engines(wanted: list[str]) -> Iterator[list[Engine]]:
    """The wanted engines that this machine has, running, each with the image."""
    directory = Path(tempfile.mkdtemp(prefix="hkb-", dir="/tmp"))
    running: list[Engine] = []
    try:
        for name in wanted:
            if name != "husk" and shutil.which(name) is None:
                print(f"# {name} is not installed: left out", file=sys.stderr)
                continue
            home = directory / name
            home.mkdir()
            running.append(Engine(name, home, *_command(name, home)))
        for engine in running:
            engine.wait_until_ready()
            _provide_image(engine)
        yield running
    finally:
        for engine in reversed(running):
            engine.stop()
        for line in reversed(Path("/proc/mounts").read_text().splitlines()):
            if f" {directory}/" in line:
                subprocess.run(["umount", "-l", line.split()[1]], check=False)
        shutil.rmtree(directory, ignore_errors=True)


def _command(name: str, home: Path) -> tuple[list[str], dict[str, str]]:
    host = f"unix://{home}/s"
    match name:
        case "husk":
            command = [sys.executable, "-m", "husk", "serve", "-H", host, "--bip", "10.231.0.1/16"]
            return [*command, "--data-root", f"{home}/d", "--exec-root", f"{home}/r"], {"PYTHONPATH": str(SOURCES)}
        case "dockerd":
            command = ["dockerd", "-H", host, "--bip", "10.232.0.1/16", "--pidfile", f"{home}/pid"]
            return [*command, "--data-root", f"{home}/d", "--exec-root", f"{home}/r"], {}
        case _:
            command = ["podman", "--root", f"{home}/d", "--runroot", f"{home}/r", "system", "service", "-t", "0", host]
            return command, {}


def _provide_image(engine: Engine) -> None:
    if engine.name == "husk":
        return
    sys.path.insert(0, str(SOURCES))
    from husk.engine.images.bootstrap import archive

    applets = subprocess.run(["busybox", "--list"], capture_output=True, text=True, check=True).stdout.split()
    data = archive(shutil.which("busybox") or "", applets)
    engine.connection().call(
        "POST", "/v1.40/images/create?fromSrc=-&repo=busybox&tag=latest", data, "application/x-tar"
    )
