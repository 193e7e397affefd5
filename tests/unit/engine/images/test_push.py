"""`docker push`: what goes to the registry, in which form, and what is remembered of it."""

import gzip
import json
from collections.abc import Sequence
from contextlib import aclosing
from typing import cast

import pytest

from husk.engine.images.limiter import Limiter
from husk.engine.images.make import make_image as make_own
from husk.engine.images.push import PushedContent, Pusher
from husk.engine.images.remove import ImageRemover
from husk.engine.images.store import PACKED
from husk.engine.model.image import ImageConfig, Pushed, PushedInsteadOfIndex, RootFS
from husk.errors import Conflict, HuskError, InvalidParameter, NotFound, SystemFault
from husk.registry.client import RegistryClient
from husk.registry.manifest import Descriptor, Platform
from husk.registry.reference import Reference, parse
from husk.registry.upload import BlobSource, OnProgress, OnRetry
from tests.support.machine import ARCHITECTURE, FOREIGN
from tests.support.registry import digest_of, make_image, tar_of
from tests.support.shelf import Shelf

PLAIN = "application/vnd.docker.image.rootfs.diff.tar"
BASE, TOP = tar_of({"base": b"1"}), tar_of({"top": b"2"})
OWN, OTHER = make_image([BASE]), make_image([TOP], architecture=FOREIGN)


class FakeTarget:
    """A registry that mounts what it has in `elsewhere`; `refuses` is the digest that it does not take."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, tuple[bytes, str]] = {}
        self.elsewhere: dict[str, set[str]] = {}
        self.sent: list[str] = []
        self.refuses: set[str] = set()

    async def has(self, digest: str) -> bool:
        return digest in self.blobs

    async def upload(
        self,
        source: BlobSource,
        *,
        mount_from: Sequence[str] = (),
        on_progress: OnProgress | None = None,
        on_retry: OnRetry | None = None,
    ) -> str:
        for repository in mount_from:
            if source.digest in self.elsewhere.get(repository, ()):
                self.blobs[source.digest] = b""
                return repository
        if source.digest in self.refuses:
            raise SystemFault(f"upload of {source.digest} failed")
        if on_retry is not None:
            on_retry(1, 0.2, "tried")
        async with aclosing(source.read(0)) as pieces:
            body = b"".join([piece async for piece in pieces])
        if on_progress is not None:
            on_progress(len(body))
        assert digest_of(body) == source.digest
        self.blobs[source.digest] = body
        self.sent.append(source.digest)
        return ""

    async def put_manifest(self, reference: str, body: bytes, media_type: str, on_retry: object = None) -> None:
        document = json.loads(body)
        named = [*document.get("layers", []), *([document["config"]] if "config" in document else [])]
        missing = [one["digest"] for one in named if one["digest"] not in self.blobs]
        missing += [one["digest"] for one in document.get("manifests", []) if one["digest"] not in self.manifests]
        assert not missing, "a registry refuses a manifest of what it does not have"
        self.manifests[reference] = body, media_type


class FakeClient:
    def __init__(self) -> None:
        self.server = FakeTarget()
        self.asked: list[Reference] = []

    async def target(self, ref: Reference, auth: object = None) -> FakeTarget:
        self.asked.append(ref)
        return self.server


class Push:
    def __init__(self, shelf: Shelf) -> None:
        self.shelf, self.client = shelf, FakeClient()
        self.server = self.client.server
        self.restart()

    def restart(self) -> None:
        """As another daemon on the same store."""
        registry = cast(RegistryClient, self.client)
        self.pusher = Pusher(self.shelf.store, registry, self.shelf.state, Limiter(2))

    async def __call__(self, name: str, tag: str = "", platform: Platform | None = None) -> None:
        await self.pusher.push(name, tag, platform, None, self.shelf.told.append)


@pytest.fixture
def push(shelf: Shelf) -> Push:
    return Push(shelf)


async def test_what_came_from_a_registry_goes_back_byte_for_byte(push: Push, shelf: Shelf) -> None:
    image = await shelf.add(OWN, "team/app:1")
    await push("team/app", "1")
    assert push.server.manifests == {"1": (OWN.manifest, OWN.media_type)} and push.server.blobs == OWN.blobs
    pushed = next(one.aux for one in shelf.told if isinstance(one.aux, Pushed))
    assert (pushed.tag, pushed.digest, pushed.size) == ("1", OWN.digest, len(OWN.manifest))
    assert f"1: digest: {OWN.digest} size: {len(OWN.manifest)}" in shelf.statuses
    assert {"Preparing", "Pushing", "Retrying in 1 seconds", "Pushed"} <= set(shelf.statuses)
    assert [str(name) for name in shelf.catalog.names(image)][1:] == [f"docker.io/team/app@{OWN.digest}"]
    assert [(event.action, event.actor_id) for event in shelf.happened] == [("push", "team/app:1")]


async def test_without_a_tag_all_tags_go(push: Push, shelf: Shelf) -> None:
    await shelf.add(OWN, "app:1", "app:2", "other:3")
    await push("app")
    assert push.server.manifests.keys() == {"1", "2"}
    assert sorted(push.server.sent) == sorted(OWN.blobs), "the second tag has nothing new to send"
    assert "Layer already exists" in shelf.statuses


async def own_image(shelf: Shelf, *names: str) -> str:
    """One that was built here, the same layer in it twice; the digest of that layer's tar."""
    one = await shelf.put_layer(BASE, PLAIN)
    two = await shelf.put_layer(BASE, PLAIN, one.chain_id)
    document = ImageConfig(architecture=ARCHITECTURE, os="linux", rootfs=RootFS(diff_ids=[one.diff_id, two.diff_id]))
    image = await make_own(shelf.blobs, document, [one, two])
    await shelf.catalog.add(image, *(parse(name) for name in names))
    return one.blob


async def test_a_layer_made_here_is_compressed_once_and_remembered(push: Push, shelf: Shelf) -> None:
    plain = await own_image(shelf, "app:1")
    await push("app", "1")
    manifest = json.loads(push.server.manifests["1"][0])
    first, second = manifest["layers"]
    assert first == second and first["mediaType"] == f"{PLAIN}.gzip"
    packed = push.server.blobs[first["digest"]]
    assert (gzip.decompress(packed), len(packed)) == (BASE, first["size"])
    push.server.sent.clear()
    push.restart()
    await push("app", "1")
    assert push.server.sent == [], "its digest is known, so the registry is asked before anything is compressed"
    assert shelf.state.has(PACKED) and plain not in push.server.blobs


async def test_what_became_of_layers_that_are_gone_is_forgotten(push: Push, shelf: Shelf) -> None:
    await own_image(shelf, "app:1")
    await push("app", "1")
    await push.pusher.collect()
    assert shelf.state.has(PACKED)
    await ImageRemover(shelf.store).remove("app:1", True, False, ())
    await push.pusher.collect()
    assert not shelf.state.has(PACKED)


async def test_a_layer_that_another_repository_of_the_registry_has_is_mounted(push: Push, shelf: Shelf) -> None:
    await shelf.add(OWN, "app:1", f"docker.io/library/base@{OWN.digest}", f"elsewhere.test/base@{OWN.digest}")
    push.server.elsewhere["library/base"] = set(OWN.layer_digests)
    await push("app", "1")
    assert push.server.sent == [OWN.config_digest] and "Mounted from library/base" in shelf.statuses


async def test_an_index_goes_out_whole(push: Push, shelf: Shelf) -> None:
    index = await shelf.add_index([OWN, OTHER], "app:1")
    await push("app", "1")
    assert push.server.manifests.keys() == {"1", OWN.digest, OTHER.digest}
    assert push.server.manifests["1"] == (await shelf.blobs.read(index.digest), index.media_type)
    assert shelf.catalog.target(parse(f"app@{index.digest}")) == index.digest


async def test_of_an_index_that_is_not_all_here_the_hosts_image_goes_and_the_client_hears_it(
    push: Push, shelf: Shelf
) -> None:
    index = await shelf.add_index([OWN, OTHER], "app:1", here=[OWN])
    await push("app", "1")
    assert push.server.manifests == {"1": (OWN.manifest, OWN.media_type)}
    (instead,) = [one.aux for one in shelf.told if isinstance(one.aux, PushedInsteadOfIndex)]
    assert (instead.original_index.digest, instead.selected_manifest.digest) == (index.digest, OWN.digest)


async def test_one_platform_of_an_index(push: Push, shelf: Shelf) -> None:
    await shelf.add_index([OWN, OTHER], "app:1")
    await push("app", "1", Platform(FOREIGN, "linux"))
    assert push.server.manifests == {"1": (OTHER.manifest, OTHER.media_type)}
    assert not any(isinstance(one.aux, PushedInsteadOfIndex) for one in shelf.told)
    with pytest.raises(NotFound, match=r"does not provide the specified platform \(linux/s390x\)"):
        await push("app", "1", Platform("s390x", "linux"))


async def test_of_several_foreign_platforms_none_is_guessed(push: Push, shelf: Shelf) -> None:
    foreign = [make_image([BASE], architecture=name) for name in ("s390x", "ppc64le", "riscv64")]
    await shelf.add_index(foreign, "app:1", here=foreign[:2])
    with pytest.raises(Conflict, match="multiple matching manifests found"):
        await push("app", "1")


@pytest.mark.parametrize(
    ("name", "tag", "error", "message"),
    [
        (f"app@{OWN.digest}", "", InvalidParameter, "cannot push a digest reference"),
        ("app", "2", NotFound, "tag does not exist: app:2"),
        ("apps", "1", NotFound, "An image does not exist locally with the tag: apps"),
    ],
)
async def test_what_is_not_there_is_not_asked_of_the_registry(
    push: Push, shelf: Shelf, name: str, tag: str, error: type[HuskError], message: str
) -> None:
    await shelf.add(OWN, "app:1")
    with pytest.raises(error, match=message):
        await push(name, tag)
    assert push.client.asked == []


async def test_a_layer_that_fails_is_the_one_error_and_no_manifest_goes(push: Push, shelf: Shelf) -> None:
    made = make_image([BASE, TOP])
    image = await shelf.add(made, "app:1")
    push.server.refuses.add(made.layer_digests[0])
    with pytest.raises(SystemFault, match=f"upload of {made.layer_digests[0]} failed"):
        await push("app", "1")
    assert push.server.manifests == {} and shelf.happened == []
    assert not any(name in shelf.store.pins for name in (image.id, *image.chain_ids))
    assert not any(name.digest for name in shelf.catalog.names(image))


async def test_an_image_removed_while_it_is_pushed_still_arrives_whole(push: Push, shelf: Shelf) -> None:
    image = await shelf.add(OWN, "app:1")
    original = push.server.put_manifest

    async def put_manifest(reference: str, body: bytes, media_type: str, on_retry: object = None) -> None:
        await ImageRemover(shelf.store).remove("app:1", False, False, ())
        await original(reference, body, media_type)

    push.server.put_manifest = put_manifest  # type: ignore[method-assign]
    await push("app", "1")
    assert push.server.manifests["1"] == (OWN.manifest, OWN.media_type)
    assert shelf.catalog.get(image.id) is None and shelf.layers.records == {}
    assert image.id not in shelf.blobs.all()


async def test_a_result_of_a_build_goes_out_as_it_is(push: Push, shelf: Shelf) -> None:
    layer = await shelf.put_layer(BASE, PLAIN)
    for body in OWN.blobs.values():
        await shelf.blobs.put(body)
    packed = Descriptor(media_type="m", digest=OWN.layer_digests[0], size=len(OWN.blobs[OWN.layer_digests[0]]))
    config = Descriptor(digest=OWN.config_digest, size=len(OWN.blobs[OWN.config_digest]))
    upload = PushedContent(parse("team/app:1"), [(packed, layer)], [config], [("1", OWN.manifest, OWN.media_type)])
    await push.pusher.upload(upload, None, shelf.told.append)
    assert push.server.manifests == {"1": (OWN.manifest, OWN.media_type)} and push.server.blobs == OWN.blobs
    assert [(event.action, event.actor_id) for event in shelf.happened] == [("push", "team/app:1")]
    push.server.blobs.clear()
    push.server.manifests.clear()
    push.server.refuses = {packed.digest}
    with pytest.raises(SystemFault, match="failed"):
        await push.pusher.upload(upload, None, shelf.told.append)
    assert push.server.manifests == {}
