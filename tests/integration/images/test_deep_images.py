"""Images of very many layers: all of them are mounted, or none; what cannot be mounted is not taken in."""

import asyncio
import json

import pytest

from husk.engine.images.make import MOST_LAYERS
from tests.support.archives import member, write
from tests.support.daemon import Daemon
from tests.support.fake_registry import FakeRegistry
from tests.support.images import busybox_layer, settled, stored
from tests.support.machine import ARCHITECTURE
from tests.support.registry import Image, digest_of, make_image, tar_of
from tests.support.waiting import until

LOWEST, OTHER = tar_of({"lowest": b"here"}), tar_of({"other": b"x"})


def archive(name: str, layers: int) -> bytes:
    """Return an archive for `docker load`: busybox above the lowest layer, and one layer again and again above that."""
    files = {"lowest": LOWEST, "busybox": busybox_layer(), "other": OTHER}
    order = ["lowest", "busybox", *["other"] * (layers - 2)]
    config = {
        "architecture": ARCHITECTURE,
        "os": "linux",
        "rootfs": {"type": "layers", "diff_ids": [digest_of(files[one]) for one in order]},
    }
    files["c.json"] = json.dumps(config).encode()
    files["manifest.json"] = json.dumps([{"Config": "c.json", "RepoTags": [name], "Layers": order}]).encode()
    return write(*((member(path, size=len(data)), data) for path, data in files.items()))


def load(daemon: Daemon, name: str, layers: int) -> str:
    answer = daemon.http("POST", "/images/load", archive(name, layers), {"Content-Type": "application/x-tar"})
    return answer.body.decode()


def test_all_layers_of_the_deepest_image_are_mounted_and_one_more_is_refused(daemon: Daemon) -> None:
    before = settled(daemon)
    assert "Loaded image: deep:1" in load(daemon, "deep:1", MOST_LAYERS)
    with_it = settled(daemon)
    assert daemon.docker("run", "--name", "deep", "deep:1", "cat", "/lowest", "/other").stdout == "herex"
    commit = daemon.docker("commit", "deep", "deeper", check=False)
    assert commit.returncode == 1 and "max depth exceeded" in commit.stderr
    dockerfile = "FROM deep:1\nRUN --mount=type=tmpfs,target=/mnt cat /lowest > /copy\n"
    build = daemon.docker("build", "-t", "deeper", "-", input=dockerfile, check=False)
    assert build.returncode == 1 and "max depth exceeded" in build.stderr, build.stderr
    daemon.docker("rm", "deep")
    daemon.docker("builder", "prune", "-af")
    until(lambda: stored(daemon) == with_it, "what could not be an image is gone")
    assert "max depth exceeded" in load(daemon, "deeper:1", MOST_LAYERS + 1)
    daemon.docker("rmi", "deep:1")
    until(lambda: stored(daemon) == before, "all of it is gone")


@pytest.mark.parametrize("by", ["pull", "build"])
async def test_of_a_manifest_that_names_one_layer_10000_times_nothing_is_fetched(daemon: Daemon, by: str) -> None:
    image = make_image([OTHER])
    config = json.loads(image.blobs[image.config_digest])
    manifest = json.loads(image.manifest)
    config["rootfs"]["diff_ids"] *= 10_000
    manifest["layers"] *= 10_000
    body = json.dumps(config).encode()
    manifest["config"] |= {"digest": digest_of(body), "size": len(body)}
    many = json.dumps(manifest).encode()
    layer = manifest["layers"][0]["digest"]
    blobs = {digest_of(body): body, layer: image.blobs[layer]}
    async with FakeRegistry() as fake:
        fake.add("many", "1", Image(many, image.media_type, blobs, digest_of(body), [layer]))
        name = f"{fake.host}/many:1"
        if by == "pull":
            answer = await asyncio.to_thread(daemon.docker, "pull", name, check=False)
        else:
            dockerfile = f"FROM {name}\nRUN true\n"
            answer = await asyncio.to_thread(daemon.docker, "build", "-", input=dockerfile, check=False)
        assert answer.returncode == 1 and "max depth exceeded" in answer.stderr, answer.stderr
        assert not fake.asked(layer)
