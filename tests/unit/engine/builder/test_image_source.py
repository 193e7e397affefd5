"""Images as sources: from here, or pulled."""

from types import SimpleNamespace
from typing import Any

import pytest

from husk.engine.builder.image_source import ImageSource, credentials_in
from husk.engine.builder.operations import Source
from husk.engine.builder.registry_login import login_at
from husk.engine.model.image import Progress
from husk.errors import NotFound
from husk.registry import reference as references
from husk.registry.auth import Credentials
from husk.registry.manifest import Platform

HERE = Platform("amd64", "linux")
BUSYBOX = "docker.io/library/busybox:latest"
IMAGE = SimpleNamespace(id="sha256:1", chain_ids=["sha256:a", "sha256:b"])
ME = Credentials(username="me", password="secret")


class Images:
    def __init__(self, *here):
        self.here = set(here)
        self.pulled = []

    def select(self, name, platform):
        if name not in self.here:
            raise NotFound(name)
        return SimpleNamespace(image=IMAGE)

    async def pull(self, name, tag, platform, auth, report):
        self.pulled.append((name, platform, auth))
        report(Progress(status="Downloading", id="abc", current=5, total=10))
        report(Progress(status="Pull complete", id="abc"))
        self.here.add(name)


class Blobs:
    async def read(self, digest):
        return b'{"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": ["sha256:d"]}}'


class Session:
    """Asked when a registry wants to know: test_registry_login."""


class Watcher:
    def __init__(self, session=None):
        self.session = session
        self.told = []

    def status(self, status):
        self.told.append((status.id, status.current, status.total, status.done))


def source(images: Any) -> ImageSource:
    store: Any = SimpleNamespace(blobs=Blobs())
    return ImageSource(images, store)


async def fetch(images: Any, watcher: Any):
    kind, wanted = source(images), Source(f"docker-image://{BUSYBOX}")
    return await kind.key(wanted, HERE, watcher), await kind.fetch(wanted, HERE, watcher)


async def test_an_image_that_is_here_is_not_pulled():
    images = Images(BUSYBOX)
    key, fetched = await fetch(images, Watcher())
    assert (key, fetched.stack) == ("sha256:1", "layer:sha256:a layer:sha256:b")
    assert fetched.description == f"pulled from {BUSYBOX}"
    assert images.pulled == []


async def test_another_one_is_pulled_once_as_the_client():
    session: Any = Session()
    images, watcher = Images(), Watcher(session)
    await fetch(images, watcher)
    assert images.pulled == [(BUSYBOX, "linux/amd64", login_at(references.parse(BUSYBOX), session))]
    assert watcher.told == [("abc", 5, 10, False)]


async def test_nobody_in_particular_pulls_without_credentials():
    images = Images()
    await fetch(images, Watcher())
    assert images.pulled == [(BUSYBOX, "linux/amd64", None)]


@pytest.mark.parametrize(("pull", "pulled"), [(False, 0), (True, 1)])
async def test_what_a_stage_begins_with(pull, pulled):
    images: Any = Images(BUSYBOX)
    known = credentials_in({"https://index.docker.io/v1/": ME})
    base = await source(images).resolve("busybox", HERE, pull, known, lambda progress: None)
    assert base.reference == BUSYBOX
    assert base.document.rootfs.diff_ids == ["sha256:d"]
    assert images.pulled == [(BUSYBOX, "linux/amd64", ME)] * pulled


@pytest.mark.parametrize(
    ("known", "domain", "found"),
    [
        ({"registry.example": ME}, "registry.example", ME),
        ({"https://registry.example": ME}, "registry.example", ME),
        ({"index.docker.io": ME}, "docker.io", ME),
        ({"other.example": ME}, "registry.example", None),
    ],
)
def test_whose_credentials(known, domain, found):
    assert credentials_in(known)(domain) == found
