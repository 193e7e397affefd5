"""A dockerd and a Husk with the same two images: `parity`, a bare busybox, and `rich`, whose configuration is long."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from husk.storage.busybox import archive
from tests.support.daemon import Daemon
from tests.support.dockerd import Dockerd
from tests.support.machine import ARCHITECTURE
from tests.support.parity import PATH, RICH_IMAGE, Pair
from tests.support.registry import tar_of

_CREATED = "2024-05-06T07:08:09Z"
_CONFIGS = {
    "parity:latest": {"Cmd": ["sh"], "Env": [PATH]},
    "rich:latest": RICH_IMAGE | {"OnBuild": ["RUN true"]},
}


@pytest.fixture(scope="session")
def pair() -> Iterator[Pair]:
    if reason := Dockerd.missing():
        pytest.skip(reason)
    with Dockerd() as dockerd, Daemon() as husk:
        data, ids = _images()
        for engine in (dockerd, husk):
            # The client would talk each in the newest version it knows; the comparison is about one.
            engine.extra_environment["DOCKER_API_VERSION"] = "1.41"
            engine.docker_bytes("load", input=data)
        husk.docker("rmi", "busybox:latest")
        yield Pair(dockerd, husk, ids)


def _images() -> tuple[bytes, dict[str, str]]:
    """An archive as `docker save` makes it, and the ids in it with a word for each."""
    program = shutil.which("busybox")
    assert program is not None, "the host has no static busybox"
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    layer = archive(program, [name for name in listed if "/" not in name])
    diff_id = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    ids = {diff_id: "<layer>"}
    manifest = []
    files = {"layer.tar": layer}
    for name, config in _CONFIGS.items():
        text = json.dumps(
            {
                "architecture": ARCHITECTURE,
                "os": "linux",
                "created": _CREATED,
                "config": config,
                "rootfs": {"type": "layers", "diff_ids": [diff_id]},
                "history": [
                    {"created": _CREATED, "created_by": "ADD busybox /", "comment": "made by hand", "author": "nobody"},
                    {"created": _CREATED, "created_by": "CMD", "empty_layer": True},
                ],
            }
        ).encode()
        digest = hashlib.sha256(text).hexdigest()
        repository = name.partition(":")[0]
        ids |= {f"sha256:{digest}": f"<id of {repository}>", digest[:12]: f"<short id of {repository}>"}
        files[f"{digest}.json"] = text
        manifest.append({"Config": f"{digest}.json", "RepoTags": [name], "Layers": ["layer.tar"]})
    files["manifest.json"] = json.dumps(manifest).encode()
    return tar_of(files), ids
