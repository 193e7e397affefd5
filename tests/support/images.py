"""Images that run, and what a daemon has stored of images: for tests that pull, commit and remove."""

import os
import shutil
from functools import cache
from typing import NamedTuple

from husk.storage.busybox import archive
from tests.support.daemon import Daemon

APPLETS = ["cat", "chmod", "cp", "echo", "id", "ls", "mkdir", "mv", "rm", "sh", "sleep", "stat", "su", "test", "true"]


@cache
def busybox_layer() -> bytes:
    """An uncompressed layer with a shell and the usual tools."""
    program = shutil.which("busybox")
    assert program is not None, "the host has no static busybox"
    return archive(program, APPLETS)


class Stored(NamedTuple):
    """What lies in a daemon's data root because of images; all of it has an owner, or should not be there."""

    layers: frozenset[str]
    blobs: frozenset[str]
    half_written: frozenset[str]
    images: frozenset[str]


def stored(daemon: Daemon) -> Stored:
    root = daemon.config.data_root
    return Stored(
        layers=frozenset(os.listdir(root / "layers/l")),
        blobs=frozenset(os.listdir(root / "blobs/sha256")),
        half_written=frozenset(os.listdir(root / "blobs/ingest")) | frozenset(os.listdir(root / "layers/trash")),
        images=frozenset(daemon.docker("images", "-aq", "--no-trunc").stdout.split()),
    )


def forget_images(daemon: Daemon) -> None:
    """Back to the one image that every daemon begins with."""
    daemon.remove_containers()
    busybox = daemon.docker("images", "-q", "--no-trunc", "busybox:latest").stdout.strip()
    for image in dict.fromkeys(daemon.docker("images", "-aq", "--no-trunc").stdout.split()):
        if image != busybox:
            daemon.docker("rmi", "-f", image, check=False)
    for name in daemon.docker("images", "--format", "{{.Repository}}:{{.Tag}}").stdout.split():
        if name not in ("busybox:latest", "<none>:<none>"):
            daemon.docker("rmi", name)
    digests = daemon.http("GET", "/images/busybox:latest/json").json()["RepoDigests"]
    for name in digests:
        daemon.docker("rmi", name)
