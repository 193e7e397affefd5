"""Images that run, and what a daemon has stored of images: for tests that pull, commit and remove."""

import os
import shutil
from functools import cache
from typing import Any, NamedTuple

from husk.storage.busybox import archive
from tests.support.daemon import Daemon
from tests.support.waiting import until

APPLETS = ["cat", "chmod", "cp", "echo", "id", "ls", "mkdir", "mv", "rm", "sh", "sleep", "stat", "su", "test", "true"]


@cache
def busybox_layer(*more: str) -> bytes:
    """An uncompressed layer with a shell and the usual tools, and `more` of them."""
    program = shutil.which("busybox")
    assert program is not None, "the host has no static busybox"
    return archive(program, [*APPLETS, *more])


class Stored(NamedTuple):
    """The files in a daemon's data root that are there because of images; each has an owner, or should not be there."""

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
        images=frozenset(image["Id"] for image in _listed(daemon)),
    )


def settled(daemon: Daemon) -> Stored:
    """Return the stored files once all is deleted that was thrown away before, which happens in the background."""
    until(lambda: not stored(daemon).half_written, "what was thrown away is deleted")
    return stored(daemon)


def forget_images(daemon: Daemon) -> None:
    """Back to the one image that every daemon begins with."""
    daemon.remove_containers()
    busybox = daemon.http("GET", "/images/busybox:latest/json").json()["Id"]
    for image in _listed(daemon):
        if image["Id"] != busybox:
            daemon.http("DELETE", f"/images/{image['Id']}?force=1")
    names = [name for image in _listed(daemon) for name in image["RepoTags"] if name != "busybox:latest"]
    digests = daemon.http("GET", "/images/busybox:latest/json").json()["RepoDigests"]
    for name in [*names, *digests]:
        answer = daemon.http("DELETE", f"/images/{name}")
        # With the last name of an image its digests go too.
        assert answer.status in (200, 404), answer.body


def _listed(daemon: Daemon) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daemon.http("GET", "/images/json?all=1").json()
    return found
