"""Ways of tests to talk to an engine on a Unix socket: the docker client, the Python SDK, HTTP, a bare connection."""

import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, NamedTuple

from docker import DockerClient

COMMAND_TIMEOUT = 60.0


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


class Client:
    """The clients of one engine; `directory` is where they keep their own configuration."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.socket_path = directory / "s"
        self.host = f"unix://{self.socket_path}"
        self.log_path = directory / "log"
        self.extra_environment: dict[str, str] = {}

    @property
    def environment(self) -> dict[str, str]:
        """For a client program: it talks to this daemon, and keeps its own configuration out of the user's."""
        own = {"DOCKER_HOST": self.host, "DOCKER_CONFIG": str(self.directory / "docker")}
        return {**os.environ, **own, **self.extra_environment}

    def docker(
        self, *arguments: str, check: bool = True, input: str | None = None, timeout: float = COMMAND_TIMEOUT
    ) -> subprocess.CompletedProcess[str]:
        """Run the real docker client to its end."""
        sent = None if input is None else input.encode()
        done = self.docker_bytes(*arguments, check=check, input=sent, timeout=timeout)
        return subprocess.CompletedProcess(done.args, done.returncode, _text(done.stdout), _text(done.stderr))

    def docker_bytes(
        self, *arguments: str, check: bool = True, input: bytes | None = None, timeout: float = COMMAND_TIMEOUT
    ) -> subprocess.CompletedProcess[bytes]:
        """The same for what is no text: archives, a program's own bytes."""
        stdin = {"stdin": subprocess.DEVNULL} if input is None else {}
        try:
            done = subprocess.run(
                ["docker", *arguments],
                env=self.environment,
                input=input,
                capture_output=True,
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
                f"stdout: {_text(done.stdout)}\nstderr: {_text(done.stderr)}"
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

    def log(self, lines: int = 100) -> str:
        """The end of what the daemon logged."""
        try:
            text = self.log_path.read_text(errors="replace")
        except FileNotFoundError:
            return ""
        return "--- daemon log\n" + "\n".join(text.splitlines()[-lines:])

    def answers(self) -> bool:
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


def _text(output: bytes | None) -> str:
    """With the line ends of a terminal as those of a file."""
    return (output or b"").decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
