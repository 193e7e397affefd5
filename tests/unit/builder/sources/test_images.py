"""Images as sources: from here, or pulled."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.builder.graph.op_digests import source_digest
from husk.builder.graph.operations import Source
from husk.builder.sources.images import ImageSource, credentials_in
from husk.builder.sources.registry_login import login_at
from husk.engine.images.fetch import LayerFetcher
from husk.engine.images.limiter import Limiter
from husk.engine.model.image import Progress
from husk.errors import NotFound
from husk.registry import reference as references
from husk.registry.auth import Credentials
from husk.registry.manifest import Descriptor, Platform
from husk.storage.state.store import StateStore
from tests.support.registry import digest_of, make_image
from tests.support.shelf import Shelf

HERE = Platform("amd64", "linux")
BUSYBOX = "docker.io/library/busybox:latest"
IMAGE = SimpleNamespace(id="sha256:1", manifest="sha256:m", chain_ids=["sha256:a", "sha256:b"])
ME = Credentials(username="me", password="secret")


class Images:
    def __init__(self, *here):
        self.here = set(here)
        self.pulled = []
        self.id = IMAGE.id

    def select(self, name, platform):
        if name not in self.here:
            raise NotFound(name)
        return SimpleNamespace(image=SimpleNamespace(**{**vars(IMAGE), "id": self.id}))

    async def pull(self, name, tag, platform, auth, report):
        self.pulled.append((name, platform, auth))
        report(Progress(status="Downloading", id="abc", current=5, total=10))
        report(Progress(status="Pull complete", id="abc"))
        self.here.add(name)


class Blobs:
    def __init__(self):
        self.read_ones = []

    async def read(self, digest):
        self.read_ones.append(digest)
        return b'{"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": ["sha256:d"]}}'


class Session:
    """Asked when a registry wants to know: test_registry_login."""


class Watcher:
    def __init__(self, session=None):
        self.session = session
        self.told = []

    def status(self, status):
        self.told.append((status.id, status.current, status.total, status.done))


class Registry:
    """One image, by its tag and by its digest."""

    def __init__(self):
        self.made = make_image([b"one layer"])
        self.asked = []
        self.fetched = []

    async def manifest(self, reference, auth):
        self.asked.append((str(reference), auth))
        described = Descriptor(
            media_type=self.made.media_type, digest=digest_of(self.made.manifest), size=len(self.made.manifest)
        )
        return SimpleNamespace(body=self.made.manifest, descriptor=described)

    async def blob_bytes(self, reference, descriptor, auth):
        return self.made.blobs[descriptor.digest]

    async def blob(self, reference, descriptor, auth, again):
        self.fetched.append((reference.domain, auth))
        yield self.made.blobs[descriptor.digest]


@pytest.fixture
def registry():
    return Registry()


@pytest.fixture
def shelf(tmp_path, state):
    return Shelf(tmp_path, state)


@pytest.fixture
def state(tmp_path):
    store = StateStore.open(tmp_path / "state.db")
    yield store
    store.close()


def source(images: Any, registry: Any = None, blobs: Blobs | None = None) -> ImageSource:
    store: Any = SimpleNamespace(blobs=blobs or Blobs())
    return ImageSource(images, store, registry)


async def fetch(kind: ImageSource, watcher: Any, name: str = BUSYBOX):
    wanted = Source(f"docker-image://{name}")
    return await kind.key(wanted, HERE, watcher), await kind.fetch(wanted, HERE, watcher)


async def test_an_image_that_is_here_is_not_pulled():
    images = Images(BUSYBOX)
    kind = source(images)
    key, fetched = await fetch(kind, Watcher())
    assert (key, fetched.stack) == ("sha256:1", "layer:sha256:a layer:sha256:b")
    assert fetched.description == f"pulled from {BUSYBOX}"
    assert await kind.portable_keys(Source(f"docker-image://{BUSYBOX}"), HERE, cast(Any, Watcher())) == [
        source_digest("sha256:b")
    ]
    assert images.pulled == []


async def test_its_configuration_is_read_once():
    images, blobs = Images(BUSYBOX), Blobs()
    kind = source(images, blobs=blobs)
    watcher: Any = Watcher()
    first = await kind.describe(BUSYBOX, HERE, False, watcher)
    assert await kind.describe(BUSYBOX, HERE, False, watcher) == first
    assert blobs.read_ones == ["sha256:1"]
    for number in range(20):
        images.id = f"sha256:other{number}"
        await kind.describe(BUSYBOX, HERE, False, watcher)
    images.id = IMAGE.id
    await kind.describe(BUSYBOX, HERE, False, watcher)
    assert blobs.read_ones.count("sha256:1") == 2  # few are kept


async def test_of_another_one_layers_are_fetched_when_they_are_needed_and_no_list_shows_it(registry, shelf):
    images: Any = Images()
    images.fetcher = LayerFetcher(shelf.store, Limiter(1))
    kind = ImageSource(images, shelf.store, registry)
    session: Any = Session()
    watcher: Any = Watcher(session)
    found = await kind.describe("busybox", HERE, False, watcher)
    assert found.reference == f"{BUSYBOX}@{found.digest}"
    base = await kind.look_up("busybox", HERE, False, watcher)
    assert len(base.document.rootfs.diff_ids) == 1
    keys = await kind.portable_keys(Source(f"docker-image://{found.reference}"), HERE, watcher)
    assert shelf.layers.records == {}
    key, fetched = await fetch(kind, watcher, found.reference)
    (chain_id,) = shelf.layers.records
    assert keys == [source_digest(chain_id)]
    assert key == registry.made.config_digest
    assert (fetched.stack, list(fetched.made)) == (f"layer:{chain_id}", [f"layer:{chain_id}"])
    assert shelf.store.held.all == {chain_id}
    assert len(shelf.catalog) == 0
    assert images.pulled == []
    assert [auth for _, auth in registry.asked] == [login_at(references.parse(BUSYBOX), session)] * 2


async def test_layers_come_from_the_registry_that_is_named_and_not_from_who_answered_first(registry, shelf):
    images: Any = Images()
    images.fetcher = LayerFetcher(shelf.store, Limiter(1))
    kind = ImageSource(images, shelf.store, registry)
    session: Any = Session()
    watcher: Any = Watcher(session)
    names = [f"{host}/app@{digest_of(registry.made.manifest)}" for host in ("first.example", "second.example")]
    described = [await kind.describe(name, HERE, False, watcher) for name in names]
    assert [found.reference for found in described] == names
    await fetch(kind, watcher, names[1])
    assert registry.fetched == [("second.example", login_at(references.parse(names[1]), session))]


async def test_nobody_in_particular_asks_without_credentials(registry):
    watcher: Any = Watcher()
    await source(Images(), registry).describe("busybox", HERE, True, watcher)
    assert registry.asked == [(BUSYBOX, None)]


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
