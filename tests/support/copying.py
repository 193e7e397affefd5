"""Copying files in and out of containers by the API's own requests."""

import base64
import json
import os
from urllib.parse import quote

from tests.support.daemon import Answer, Daemon
from tests.support.lifecycle import inspect

FILES = "mkdir -p /data/sub; echo a >/data/a; echo c >/data/sub/c; ln -s data /dlink; ln -s ../etc/passwd /data/flink"


def make(daemon: Daemon, script: str = FILES, *options: str) -> str:
    """A container that has run `script` and ended."""
    daemon.docker("run", "--name", "box", *options, "busybox", "sh", "-c", script)
    return "box"


def where(name: str, path: str | bytes, **query: str) -> str:
    more = "".join(f"&{key}={value}" for key, value in query.items())
    return f"/containers/{name}/archive?path={quote(path, safe='')}{more}"


def status(daemon: Daemon, name: str, path: str | bytes) -> dict:
    answer = daemon.http("HEAD", where(name, path))
    assert answer.status == 200
    return json.loads(base64.b64decode(answer.headers["X-Docker-Container-Path-Stat"]))


def get(daemon: Daemon, name: str, path: str | bytes) -> bytes:
    answer = daemon.http("GET", where(name, path))
    assert answer.status == 200, answer.body
    assert answer.headers["Content-Type"] == "application/x-tar"
    return answer.body


def put(daemon: Daemon, name: str, path: str, archive: bytes, **query: str) -> Answer:
    return daemon.http("PUT", where(name, path, **query), archive, {"Content-Type": "application/x-tar"})


def mounted(daemon: Daemon, container: str) -> bool:
    container_id = inspect(daemon, container)["Id"]
    return os.path.ismount(daemon.config.data_root / "containers" / container_id / "rootfs")
