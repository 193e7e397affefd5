"""What an image archive says: Docker's list, an OCI layout, both at once, and neither."""

import json

import pytest

from husk.engine.images.archive import digest_at, link_target, read_archive
from husk.errors import InvalidParameter, NotFound
from husk.registry.manifest import Platform
from tests.support.registry import Image, make_image, make_index

AMD64 = Platform("amd64", "linux")


def blob(digest: str) -> str:
    return "blobs/sha256/" + digest.removeprefix("sha256:")


def layout(image: Image, **annotations: str) -> dict[str, bytes]:
    entry = {"mediaType": image.media_type, "digest": image.digest, "size": 1, "annotations": annotations}
    return {
        "index.json": json.dumps({"manifests": [entry]}).encode(),
        blob(image.digest): image.manifest,
        blob(image.config_digest): image.blobs[image.config_digest],
    }


def test_dockers_list() -> None:
    listed = [{"Config": "./c.json", "RepoTags": ["a/b:1", "c"], "Layers": ["x/layer.tar"]}]
    (member,) = read_archive({"manifest.json": json.dumps(listed).encode()}, AMD64)
    assert (member.config, member.layers, member.manifest) == ("c.json", ["x/layer.tar"], None)
    assert [str(name) for name in member.names] == ["docker.io/a/b:1", "docker.io/library/c:latest"]


@pytest.mark.parametrize(
    ("annotations", "name"),
    [
        ({"io.containerd.image.name": "docker.io/library/a:1"}, "docker.io/library/a:1"),
        ({"org.opencontainers.image.ref.name": "team/a:2"}, "docker.io/team/a:2"),
        ({"org.opencontainers.image.ref.name": "latest"}, None),
        ({"org.opencontainers.image.ref.name": "BAD/NAME:1"}, None),
        ({}, None),
    ],
)
def test_an_oci_layout(annotations: dict[str, str], name: str | None) -> None:
    image = make_image([b"layer"])
    (member,) = read_archive(layout(image, **annotations), AMD64)
    assert member.config == blob(image.config_digest)
    assert member.layers == [blob(digest) for digest in image.layer_digests]
    assert member.manifest == (image.manifest, image.media_type)
    assert [str(each) for each in member.names] == ([name] if name else [])


def test_both_at_once_keeps_the_layouts_manifest() -> None:
    image = make_image([b"layer"])
    listed = [{"Config": blob(image.config_digest), "RepoTags": ["a:1"], "Layers": [blob(image.layer_digests[0])]}]
    (member,) = read_archive({**layout(image), "manifest.json": json.dumps(listed).encode()}, AMD64)
    assert member.manifest == (image.manifest, image.media_type)
    assert [name.familiar for name in member.names] == ["a:1"]


def test_the_platform_of_an_index_inside() -> None:
    amd, arm = make_image([b"amd"]), make_image([b"arm"], architecture="arm64")
    body, media_type = make_index([amd, arm])
    image = Image(body, media_type, {amd.config_digest: b"{}"}, amd.config_digest, [])
    documents = {**layout(image), blob(amd.digest): amd.manifest, blob(arm.digest): arm.manifest}
    (member,) = read_archive(documents, Platform("arm64", "linux"))
    assert member.config == blob(arm.config_digest)
    del documents[blob(arm.digest)]
    (member,) = read_archive(documents, Platform("arm64", "linux"))
    assert member.config == blob(amd.config_digest), "the only one that is there"


@pytest.mark.parametrize(
    ("documents", "error"),
    [
        ({}, InvalidParameter),
        ({"manifest.json": b"{}"}, InvalidParameter),
        ({"manifest.json": b'[{"Config": "c", "RepoTags": ["BAD"]}]'}, InvalidParameter),
        ({"manifest.json": b'[{"RepoTags": []}]'}, InvalidParameter),
        ({"index.json": b"[]"}, InvalidParameter),
        ({"index.json": b'{"manifests": []}'}, InvalidParameter),
        ({"index.json": b'{"manifests": [{"digest": "sha256:../x"}]}'}, InvalidParameter),
        ({"index.json": b'{"manifests": [{"digest": "sha256:' + b"0" * 64 + b'"}]}'}, NotFound),
    ],
)
def test_what_is_wrong_is_refused(documents: dict[str, bytes], error: type[Exception]) -> None:
    with pytest.raises(error):
        read_archive(documents, AMD64)


def test_places_and_links() -> None:
    assert digest_at("blobs/sha256/" + "a" * 64) == "sha256:" + "a" * 64
    assert digest_at("a" * 64 + "/layer.tar") is None
    assert digest_at("blobs/sha256/" + "A" * 64) is None
    assert link_target("two/layer.tar", "../one/layer.tar", hard=False) == "one/layer.tar"
    assert link_target("two/layer.tar", "one/layer.tar", hard=True) == "one/layer.tar"
    assert link_target("two/layer.tar", "../../../etc/passwd", hard=False) == "../../etc/passwd"
