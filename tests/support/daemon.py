"""How tests get a daemon: a real `husk serve` process with a socket, directories and a bridge of its own.

    with Daemon() as daemon:
        assert daemon.docker("run", "--rm", "busybox", "echo", "hi").stdout == "hi\\n"

Several may run at once, beside any other engine. Its directory is directly below /tmp because socket paths are short.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from docker import DockerClient

from husk.config import Config
from tests.support.litter import Traces

START_DEADLINE = 30.0
STOP_DEADLINE = 40.0
COMMAND_TIMEOUT = 60.0

_SOURCES = Path(__file__).resolve().parents[2] / "src"


class Answer(NamedTuple):
    """An HTTP response, read to its end."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        """The text of an error."""
        return str(self.json()["message"])


class CommandFailed(AssertionError):
    """A docker command did not succeed; shows what it said."""


class Daemon:
    """One daemon of a test. Starting, killing and starting again keeps its data."""

    def __init__(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="hk-", dir="/tmp"))
        self.socket_path = self.directory / "s"
        self.host = f"unix://{self.socket_path}"
        self.log_path = self.directory / "log"
        self.config = Config(
            hosts=(self.host,),
            data_root=self.directory / "data",
            exec_root=self.directory / "run",
            bip=_unused_subnet(),
        )
        self.arguments = arguments
        self.process: subprocess.Popen[bytes] | None = None
        # This tree's daemon, whatever is installed where the tests run.
        self._environment = {**os.environ, "PYTHONPATH": str(_SOURCES), **(environment or {})}
        self._traces = Traces(self.config, self.directory)

    # -- life ------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left = self.close()
        if left and error is None:
            raise AssertionError("the daemon left on the host:\n  " + "\n  ".join(left))

    def start(self, *arguments: str) -> None:
        """Start it, and return when it answers. `arguments` come on top of those of the constructor."""
        assert self.process is None, "it runs already"
        command = [sys.executable, "-m", "husk", "serve"]
        command += ["-H", self.host, "--data-root", str(self.config.data_root)]
        command += ["--exec-root", str(self.config.exec_root), "--bip", self.config.bip]
        if not any(argument.startswith("--config-file") for argument in (*self.arguments, *arguments)):
            # Whatever this machine has in /etc is not part of the test.
            empty = self.directory / "daemon.json"
            empty.write_text("{}")
            command += ["--config-file", str(empty)]
        if not any(argument.startswith("--log-level") for argument in (*self.arguments, *arguments)):
            command += ["--log-level", "debug"]
        command += [*self.arguments, *arguments]
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment, cwd="/"
            )
        deadline = time.monotonic() + START_DEADLINE
        while not self._answers():
            if self.process.poll() is not None:
                status, self.process = self.process.returncode, None
                raise AssertionError(f"the daemon ended at its start with status {status}:\n{self.log()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"the daemon does not answer after {START_DEADLINE:g} seconds:\n{self.log()}")
            time.sleep(0.01)

    def stop(self, sig: int = signal.SIGTERM) -> int:
        """End it cleanly, leaving its containers; the exit status. Does nothing when it does not run."""
        if self.process is None:
            return 0
        self._traces.remember()
        process, self.process = self.process, None
        process.send_signal(sig)
        try:
            return process.wait(STOP_DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(
                f"the daemon did not end {STOP_DEADLINE:g} seconds after SIGTERM:\n{self.log()}"
            ) from None

    def kill9(self) -> None:
        """What a crash is: no warning, no clean-up."""
        assert self.process is not None, "it does not run"
        self._traces.remember()
        process, self.process = self.process, None
        process.kill()
        process.wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def reload(self) -> None:
        """Send SIGHUP."""
        assert self.process is not None, "it does not run"
        self.process.send_signal(signal.SIGHUP)

    def close(self) -> list[str]:
        """Remove all containers, end the daemon, clean up after it. What it should have cleaned itself is returned."""
        try:
            with contextlib.suppress(AssertionError):
                if self.process is None:
                    self.start()
                self.remove_containers()
            problems = []
            try:
                self.stop()
            except AssertionError as error:
                problems.append(str(error))
            return problems + self._traces.clean()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def remove_containers(self) -> None:
        """Back to no containers at all; images stay."""
        names = self.docker("ps", "-aq").stdout.split()
        if names:
            self.docker("rm", "-f", "-v", *names, check=False)

    def check_no_litter(self) -> None:
        """After `remove_containers`: no process, mount or cgroup of theirs is left."""
        left = self._traces.settle(self.pid)
        assert not left, "containers left on the host:\n  " + "\n  ".join(left)

    # -- clients ---------------------------------------------------------------------------------------------------

    @property
    def environment(self) -> dict[str, str]:
        """For a client program: it talks to this daemon, and keeps its own configuration out of the user's."""
        return {**os.environ, "DOCKER_HOST": self.host, "DOCKER_CONFIG": str(self.directory / "docker")}

    def docker(
        self, *arguments: str, check: bool = True, input: str | None = None, timeout: float = COMMAND_TIMEOUT
    ) -> subprocess.CompletedProcess[str]:
        """Run the real docker client to its end."""
        stdin = {"stdin": subprocess.DEVNULL} if input is None else {}
        try:
            done = subprocess.run(
                ["docker", *arguments],
                env=self.environment,
                input=input,
                capture_output=True,
                text=True,
                timeout=timeout,
                **stdin,  # type: ignore[call-overload]
            )
        except subprocess.TimeoutExpired as error:
            raise CommandFailed(
                f"docker {' '.join(arguments)} did not end within {timeout:g} s\n"
                f"stdout: {_text(error.stdout)}\nstderr: {_text(error.stderr)}\n{self.log(40)}"
            ) from None
        if check and done.returncode != 0:
            raise CommandFailed(
                f"docker {' '.join(arguments)} ended with {done.returncode}\n"
                f"stdout: {done.stdout}\nstderr: {done.stderr}"
            )
        return done

    def docker_process(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """The docker client as a process that the test talks to; the caller ends it (`with`)."""
        defaults: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "env": self.environment,
        }
        return subprocess.Popen(["docker", *arguments], **{**defaults, **options})

    def sdk(self, timeout: float = COMMAND_TIMEOUT) -> DockerClient:
        """The Python SDK, connected; close it, or use it as a context manager."""
        return DockerClient(base_url=self.host, version="auto", timeout=int(timeout))

    def http(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = COMMAND_TIMEOUT,
    ) -> Answer:
        """One request over the socket. `body` is bytes, or anything that is sent as JSON."""
        sent = dict(headers or {})
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        with contextlib.closing(self.connection(timeout)) as connection:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())

    def connection(self, timeout: float = COMMAND_TIMEOUT) -> HTTPConnection:
        """An HTTP connection for tests that read a stream piece by piece."""
        return _UnixConnection(str(self.socket_path), timeout)

    def raw(self, timeout: float = COMMAND_TIMEOUT) -> socket.socket:
        """A connected socket, for requests that no client library would send."""
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        channel.settimeout(timeout)
        channel.connect(str(self.socket_path))
        return channel

    # -- looking inside --------------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        assert self.process is not None, "it does not run"
        return self.process.pid

    def log(self, lines: int = 100) -> str:
        """The end of what the daemon logged."""
        try:
            text = self.log_path.read_text(errors="replace")
        except FileNotFoundError:
            return ""
        return "--- daemon log\n" + "\n".join(text.splitlines()[-lines:])

    def _answers(self) -> bool:
        try:
            return self.http("GET", "/_ping", timeout=5).status == 200
        except (OSError, HTTPException):
            return False


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _unused_subnet() -> str:
    """A bridge address out of 10.200.0.0/13 that no route of this host covers yet."""
    taken = subprocess.run(["ip", "-o", "route", "show"], capture_output=True, text=True, check=True).stdout
    while True:
        prefix = f"10.{random.randrange(200, 208)}.{random.randrange(256)}."
        if prefix not in taken:
            return f"{prefix}1/24"


def _text(output: bytes | str | Sequence[bytes] | None) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else str(output or "")
