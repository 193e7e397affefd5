"""Phrases that the tests of volumes use often."""

from pathlib import Path
from typing import Any

from tests.support.daemon import Daemon

IMAGE_SCRIPT = (
    "mkdir -p /data/sub /empty; echo hi > /data/f; ln /data/f /data/hard; ln -s /etc /data/link; echo x > /data/sub/g; "
    "mkfifo /data/pipe; chown -R 12:13 /data; chmod 2750 /data; chown 5:6 /empty; chmod 1777 /empty; touch /file; "
    "ln -s data /linked"
)


def make_image(daemon: Daemon, name: str, *changes: str) -> str:
    """An image with content at /data and an empty directory at /empty, with owners and modes of their own."""
    container = daemon.docker("create", "--network", "none", "busybox", "sh", "-c", IMAGE_SCRIPT).stdout.strip()
    daemon.docker("start", "-a", container)
    options = [word for change in changes for word in ("-c", change)]
    daemon.docker("commit", *options, "-c", "CMD true", container, name)
    daemon.docker("rm", container)
    return name


def run(daemon: Daemon, *arguments: str, check: bool = True) -> str:
    done = daemon.docker("run", "--rm", "--network", "none", *arguments, check=check)
    return done.stdout + ("" if check else done.stderr)


def create(daemon: Daemon, *arguments: str) -> str:
    return daemon.docker("create", "--network", "none", *arguments).stdout.strip()


def background(daemon: Daemon, *arguments: str) -> str:
    return daemon.docker("run", "-d", "--network", "none", *arguments).stdout.strip()


def inspect(daemon: Daemon, container: str) -> dict[str, Any]:
    document: dict[str, Any] = daemon.http("GET", f"/containers/{container}/json").json()
    return document


def mounts(daemon: Daemon, container: str) -> dict[str, dict[str, Any]]:
    """The mount points by destination."""
    return {point["Destination"]: point for point in inspect(daemon, container)["Mounts"]}


def volumes(daemon: Daemon, *arguments: str) -> set[str]:
    return set(daemon.docker("volume", "ls", "-q", *arguments).stdout.split())


def data(daemon: Daemon, name: str) -> Path:
    return daemon.config.data_root / "volumes" / name / "_data"
