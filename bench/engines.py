"""Engines to measure side by side: Husk from this tree, and dockerd and podman where they are installed.

Each runs on a socket and directories of its own below a temporary directory, gets the same busybox image, and is gone
afterwards. Used by the other scripts here; `peers` says how each is started, and how a newer dockerd is named.
"""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.peers import available, cgroups_removed, command
from husk.storage.busybox import archive

IMAGE = "busybox:latest"


class Engine:
    """One running engine: its name, its socket, and the processes that are its cost."""

    def __init__(self, name: str, directory: Path, command: list[str], environment: dict[str, str]) -> None:
        self.name = name
        self.directory = directory
        self.socket = directory / "s"
        self.log = (directory / "log").open("wb")
        self._command = command
        self.environment = environment
        self.start()

    def start(self) -> None:
        """Start the daemon, at first or again."""
        self.process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env={**os.environ, **self.environment},
            start_new_session=True,
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
                log = (self.directory / "log").read_text(errors="replace")
                raise SystemExit(f"{self.name} did not start:\n{log[-2000:]}")
            time.sleep(0.02)

    def title(self) -> str:
        """The name with the version that answers."""
        version = str(self.connection().call("GET", "/version")[1]["Version"])
        return f"{self.name.removesuffix('-new')} {re.split('[+~]', version)[0]}"

    def docker(self, *arguments: str, stdout: int | None = None, stdin: int | None = None) -> None:
        """Run the docker command against this engine; ends the script when it fails."""
        done = subprocess.run(
            ["docker", *arguments],
            env={**os.environ, "DOCKER_HOST": f"unix://{self.socket}", "DOCKER_CONFIG": str(self.directory / "cli")},
            stdin=stdin if stdin is not None else subprocess.DEVNULL,
            stdout=stdout if stdout is not None else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        if done.returncode != 0:
            raise SystemExit(f"{self.name}: docker {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")

    def processes(self) -> Iterator[Path]:
        """Find in /proc the processes that belong to the engine: its session, monitors, shims and workers."""
        program = Path(f"/proc/{self.process.pid}/exe")
        own = os.readlink(program) if program.is_symlink() else ""
        workers = {self.process.pid}
        for entry in sorted(Path("/proc").glob("[0-9]*"), key=lambda entry: int(entry.name)):
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                exe = os.readlink(entry / "exe")
                if parent in workers and exe == own:
                    workers.add(int(entry.name))
                mine = os.getsid(int(entry.name)) == self.process.pid or f"{self.directory}/" in command
                if (mine or int(entry.name) in workers) and Path(exe).name not in ("docker", "busybox"):
                    yield entry

    def pss(self) -> float:
        """MiB of all processes that belong to the engine."""
        total = 0
        for entry in self.processes():
            with contextlib.suppress(OSError):
                rollup = (entry / "smaps_rollup").read_text()
                total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
        return total / 1024

    def cpu(self) -> float:
        """Seconds of processor time that the engine's processes, and those that they have waited for, have used."""
        ticks = 0
        for entry in self.processes():
            with contextlib.suppress(OSError):
                ticks += sum(map(int, (entry / "stat").read_text().rpartition(")")[2].split()[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def forget_peak(self) -> None:
        """Let `peak` count from now on."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def peak(self) -> float:
        """MiB that the daemon's own process, without its workers, has had at most."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def remove(self, *containers: str) -> None:
        """By name or id, at once: podman gives each ten seconds to end when it is removed, whatever `force` says."""
        for container in containers:
            with contextlib.suppress(http.client.HTTPException):
                self.connection().call("POST", f"/v1.40/containers/{container}/kill")
            self.connection().call("DELETE", f"/v1.40/containers/{container}?force=1")

    def stop(self) -> None:
        """End the engine, and whatever runs in it."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            for container in self.connection().call("GET", "/v1.40/containers/json?all=1")[1]:
                self.remove(container["Id"])
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        self.process.kill()
        self.process.wait()
        # podman's monitor of an exec stays for five minutes.
        for entry in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(entry.name), signal.SIGKILL)
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


def processor_time(pid: int) -> float:
    """Milliseconds of all the process's threads so far; the kernel has a clock for each process."""
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e6


def installed(wanted: list[str]) -> list[str]:
    """Those of the engines that this machine has."""
    for name in wanted:
        if not available(name):
            print(f"# {name} is not installed: left out", file=sys.stderr)
    return [name for name in wanted if available(name)]


@contextlib.contextmanager
def engines(wanted: list[str], *, network: bool = True, directory: str = "/tmp") -> Iterator[list[Engine]]:
    """The wanted engines that this machine has, running, each with the image; their files are below `directory`.

    Without `network` they have no bridge, and share the host's network so that they can reach a registry on loopback.
    """
    # Whoever ends the script, with `timeout` for instance, must not leave four engines behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    top = Path(tempfile.mkdtemp(prefix="hkb-", dir=directory))
    running: list[Engine] = []
    with cgroups_removed():
        try:
            for name in installed(wanted):
                home = top / name
                home.mkdir()
                running.append(Engine(name, home, *command(name, home, network)))
            for engine in running:
                engine.wait_until_ready()
                _provide_image(engine)
            yield running
        finally:
            # All at once: dockerd takes a second and more to end.
            with ThreadPoolExecutor() as pool:
                for ended in [pool.submit(engine.stop) for engine in running]:
                    ended.result()
            for line in reversed(Path("/proc/mounts").read_text().splitlines()):
                if f" {top}/" in line:
                    subprocess.run(["umount", "-l", line.split()[1]], check=False)
            shutil.rmtree(top, ignore_errors=True)


def busybox() -> bytes:
    """The root file system that Husk makes its busybox image of."""
    applets = subprocess.run(["busybox", "--list"], capture_output=True, text=True, check=True).stdout.split()
    return archive(shutil.which("busybox") or "", applets)


def _provide_image(engine: Engine) -> None:
    if engine.name.startswith("husk"):
        return
    path = "/v1.40/images/create?fromSrc=-&repo=busybox&tag=latest"
    engine.connection().call("POST", path, busybox(), "application/x-tar")
