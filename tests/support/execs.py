"""Other processes in containers, by the command and by the API."""

import json
import os
from typing import Any

from tests.support.daemon import Answer, Daemon
from tests.support.wire import Head, RawClient

UPGRADE = {"Connection": "Upgrade", "Upgrade": "tcp", "Content-Type": "application/json"}


def directories(daemon: Daemon) -> list[str]:
    parent = daemon.config.exec_root / "exec"
    return os.listdir(parent) if parent.exists() else []


def ran(daemon: Daemon, *arguments: str, input: str | None = None) -> tuple[int, str, str]:
    done = daemon.docker("exec", *arguments, check=False, input=input)
    return done.returncode, done.stdout, done.stderr


def create(daemon: Daemon, *command: str, container: str = "box", **config: Any) -> str:
    wish = {"AttachStdout": True, "AttachStderr": True, "Cmd": list(command), **config}
    answer = daemon.http("POST", f"/containers/{container}/exec", wish)
    assert answer.status == 201, answer.body
    return str(answer.json()["Id"])


def start(daemon: Daemon, exec_id: str, **config: Any) -> tuple[RawClient, Head]:
    client = RawClient(daemon.raw(20))
    client.request("POST", f"/exec/{exec_id}/start", json.dumps(config).encode(), UPGRADE)
    return client, client.head()


def detached(daemon: Daemon, exec_id: str) -> Answer:
    return daemon.http("POST", f"/exec/{exec_id}/start", {"Detach": True})


def inspect(daemon: Daemon, exec_id: str) -> dict[str, Any]:
    answer = daemon.http("GET", f"/exec/{exec_id}/json")
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json()
    return found
