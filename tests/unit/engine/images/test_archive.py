"""Documents of an image archive: Docker's list, an OCI layout, both at once, and neither."""

import json
from collections.abc import Callable, Mapping

import pytest

from husk.engine.images.archive import ArchivedImage, ArchivedIndex, digest_at, link_target, read_archive
from husk.engine.images.make import read_config
from husk.errors import InvalidParameter, NotFound
from husk.registry.manifest import Platform, parse_manifest
from tests.support.machine import FOREIGN
from tests.support.registry import Image, digest_of, make_image, make_index

THERE = Platform(FOREIGN, "linux")


def single(documents: Mapping[str, bytes], *platforms: Platform) -> ArchivedImage:
    """The one image that an archive describes; all its files are there."""
    (member,) = read_archive(documents, lambda path: True, platforms)
    assert isinstance(member, ArchivedImage)
    return member


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
    member = single({"manifest.json": json.dumps(listed).encode()})
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
    member = single(layout(image, **annotations))
    assert member.config == blob(image.config_digest)
    assert member.layers == [blob(digest) for digest in image.layer_digests]
    assert member.manifest == (image.manifest, image.media_type)
    assert [str(each) for each in member.names] == ([name] if name else [])


def test_both_at_once_keeps_the_layouts_manifest() -> None:
    image = make_image([b"layer"])
    listed = [{"Config": blob(image.config_digest), "RepoTags": ["a:1"], "Layers": [blob(image.layer_digests[0])]}]
    member = single({**layout(image), "manifest.json": json.dumps(listed).encode()})
    assert member.manifest == (image.manifest, image.media_type)
    assert [name.familiar for name in member.names] == ["a:1"]


class Both:
    """An archive of an image for two platforms."""

    def __init__(self, **annotations: str) -> None:
        self.own, self.other = make_image([b"own"]), make_image([b"other"], architecture=FOREIGN)
        self.body, media_type = make_index([self.own, self.other])
        self.documents = layout(Image(self.body, media_type, {"": b""}, "", []), **annotations)
        for image in (self.own, self.other):
            self.documents[blob(image.digest)] = image.manifest
            self.documents[blob(image.config_digest)] = image.blobs[image.config_digest]

    def read(self, *platforms: Platform, has: Callable[[str], bool] = lambda path: True) -> ArchivedIndex:
        (group,) = read_archive(self.documents, has, platforms)
        assert isinstance(group, ArchivedIndex)
        return group


def test_an_index_inside_has_all_platforms_that_came() -> None:
    both = Both(**{"io.containerd.image.name": "docker.io/library/a:1"})
    group = both.read()
    assert list(group.images) == [both.own.digest, both.other.digest]
    assert group.images[both.other.digest].manifest == (both.other.manifest, both.other.media_type)
    assert (group.document, [name.familiar for name in group.names]) == (both.body, ["a:1"])
    assert list(both.read(THERE).images) == [both.other.digest]
    missing = blob(both.own.layer_digests[0])
    assert list(both.read(has=lambda path: path != missing).images) == [both.other.digest]
    del both.documents[blob(both.other.digest)]
    assert list(both.read().images) == [both.own.digest]
    with pytest.raises(NotFound, match=rf"requested platform \(linux/{FOREIGN}\) not found"):
        both.read(THERE)


def test_a_manifest_that_an_index_names_many_times_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    both, read = Both(), list[bytes]()

    def noted(body: bytes, *more: str) -> object:
        read.append(body)
        return {"parse_manifest": parse_manifest, "read_config": read_config}[kind](body, *more)  # type: ignore[operator]

    index = json.loads(both.body)
    for entry in index["manifests"]:
        del entry["platform"]
    index["manifests"] *= 50
    body = json.dumps(index).encode()
    both.documents |= {blob(digest_of(body)): body}
    both.documents |= {"index.json": json.dumps({"manifests": [{"digest": digest_of(body), "size": 1}]}).encode()}
    for kind, most in (("parse_manifest", 3), ("read_config", 2)):
        read.clear()
        with monkeypatch.context() as patched:
            patched.setattr(f"husk.engine.images.archive.{kind}", noted)
            assert list(both.read(THERE).images) == [both.other.digest]
        assert 0 < len(read) <= most


def test_dockers_list_beside_an_index_adds_names_only() -> None:
    both = Both()
    listed = [{"Config": blob(both.own.config_digest), "RepoTags": ["a:1"], "Layers": []}]
    both.documents["manifest.json"] = json.dumps(listed).encode()
    group = both.read()
    assert (len(group.images), [name.familiar for name in group.names]) == (2, ["a:1"])


def test_an_attestation_is_kept_when_all_of_it_came() -> None:
    both = Both()
    statement, config = b'{"predicateType": "x"}', b'{"os": "unknown"}'
    manifest = json.dumps({
        "schemaVersion": 2,
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest_of(config), "size": 1},
        "layers": [{"mediaType": "application/vnd.in-toto+json", "digest": digest_of(statement), "size": 1}],
    }).encode()  # fmt: skip
    index = json.loads(both.body)
    index["manifests"].append({
        "mediaType": both.own.media_type, "digest": digest_of(manifest), "size": len(manifest),
        "platform": {"os": "unknown", "architecture": "unknown"},
        "annotations": {"vnd.docker.reference.type": "attestation-manifest",
                        "vnd.docker.reference.digest": both.own.digest},
    })  # fmt: skip
    body = json.dumps(index).encode()
    both.documents |= {blob(digest_of(body)): body, blob(digest_of(manifest)): manifest}
    both.documents |= {"index.json": json.dumps({"manifests": [{"digest": digest_of(body), "size": 1}]}).encode()}
    assert both.read().attached == {}
    both.documents |= {blob(digest_of(each)): each for each in (statement, config)}
    group = both.read()
    assert group.attached[digest_of(manifest)].keys() == {digest_of(each) for each in (manifest, statement, config)}
    assert [(m.kind, m.about) for m in group.index.manifests][2] == ("attestation", both.own.digest)


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
        read_archive(documents, lambda path: True)


@pytest.mark.parametrize("body", [b"rubbish", b"{}", b'{"schemaVersion": 1}', b'{"config": {}, "manifests": []}'])
def test_a_manifest_that_is_none_is_the_fault_of_the_archive(body: bytes) -> None:
    listed = json.dumps({"manifests": [{"digest": digest_of(body), "size": len(body)}]}).encode()
    with pytest.raises(InvalidParameter, match=f"invalid manifest {digest_of(body)} in the archive"):
        read_archive({"index.json": listed, blob(digest_of(body)): body}, lambda path: True)


def test_archives_from_before_docker_1_10_say_what_to_do() -> None:
    with pytest.raises(InvalidParameter, match=r"made before Docker 1\.10: .* Load it with an old Docker"):
        read_archive({"repositories": b'{"app": {"1": "x"}}', "x/json": b"{}"}, lambda path: True)


def test_places_and_links() -> None:
    assert digest_at("blobs/sha256/" + "a" * 64) == "sha256:" + "a" * 64
    assert digest_at("a" * 64 + "/layer.tar") is None
    assert digest_at("blobs/sha256/" + "A" * 64) is None
    assert link_target("two/layer.tar", "../one/layer.tar", hard=False) == "one/layer.tar"
    assert link_target("two/layer.tar", "one/layer.tar", hard=True) == "one/layer.tar"
    assert link_target("two/layer.tar", "../../../etc/passwd", hard=False) == "../../etc/passwd"
