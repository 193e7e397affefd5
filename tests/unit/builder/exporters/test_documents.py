"""Manifests and indexes."""

import json

import pytest

from husk.builder.exporters import documents
from husk.builder.exporters.documents import attest, package_url
from husk.builder.jobs.results import Predicate
from husk.registry import reference
from husk.registry.manifest import DOCKER_LIST, OCI_INDEX, Descriptor, Index, Platform, parse_manifest

LAYER = Descriptor(media_type="application/vnd.oci.image.layer.v1.tar+gzip", digest="sha256:" + "1" * 64, size=3)


@pytest.mark.parametrize(
    ("oci", "manifest_type", "config_type", "layer_type"),
    [
        (True, "oci.image.manifest.v1+json", "oci.image.config.v1+json", "oci.image.layer.v1.tar+gzip"),
        (
            False, "docker.distribution.manifest.v2+json", "docker.container.image.v1+json",
            "docker.image.rootfs.diff.tar.gzip",
        ),
    ],
)  # fmt: skip
def test_a_manifest_has_the_types_of_one_format(oci, manifest_type, config_type, layer_type):
    config = documents.config_document(b"{}", oci=oci)
    made = documents.manifest(config, [LAYER], {}, oci=oci)
    body = json.loads(made.body)
    head = "application/vnd."
    assert body["mediaType"] == made.media_type == head + manifest_type
    assert (body["config"]["mediaType"], body["config"]["size"]) == (head + config_type, 2)
    assert body["layers"] == [{"mediaType": head + layer_type, "digest": LAYER.digest, "size": 3}]
    assert "annotations" not in body


def test_annotations():
    config = documents.config_document(b"{}", oci=True)
    assert json.loads(documents.manifest(config, [], {"a": "b"}, oci=True).body)["annotations"] == {"a": "b"}


def test_an_index():
    named = Descriptor(media_type="m", digest=LAYER.digest, size=1, platform=Platform("arm64", "linux"))
    made = documents.index([named], {"c": "d"}, oci=True)
    parsed = parse_manifest(made.body, OCI_INDEX)
    assert isinstance(parsed, Index) and parsed.manifests == [named]
    assert json.loads(made.body)["annotations"] == {"c": "d"}
    assert made.descriptor.size == len(made.body)
    assert documents.index([named], {}, oci=False).media_type == DOCKER_LIST


ABOUT = Descriptor(media_type="m", digest="sha256:" + "a" * 64, size=1)
HERE = Platform("amd64", "linux")


def test_a_statement_is_a_layer_of_a_manifest_beside_the_image():
    said = Predicate(type="https://example.org/p", body=b'{"x":1}')
    made = attest(ABOUT, HERE, [reference.parse("team/app:1")], [said])
    assert made.descriptor.platform == Platform("unknown", "unknown")
    assert made.descriptor.annotations == {
        "vnd.docker.reference.type": "attestation-manifest",
        "vnd.docker.reference.digest": ABOUT.digest,
    }
    config, statement = made.blobs
    manifest = json.loads(made.manifest.body)
    assert manifest["config"]["digest"] == config.descriptor.digest
    (layer,) = manifest["layers"]
    assert layer["digest"] == statement.descriptor.digest
    assert layer["annotations"] == {"in-toto.io/predicate-type": "https://example.org/p"}
    assert json.loads(config.body)["rootfs"]["diff_ids"] == [layer["digest"]]
    told = json.loads(statement.body)
    assert (told["predicateType"], told["predicate"]) == ("https://example.org/p", {"x": 1})
    name = "pkg:docker/team/app@1?platform=linux%2Famd64"
    assert told["subject"] == [{"name": name, "digest": {"sha256": "a" * 64}}]


def test_an_artifact_says_what_it_is_and_what_it_is_about():
    made = attest(ABOUT, HERE, [], [Predicate(type="p", body=b"{}")], artifact=True)
    manifest = json.loads(made.manifest.body)
    assert list(manifest) == ["schemaVersion", "mediaType", "artifactType", "config", "layers", "subject"]
    assert manifest["artifactType"] == "application/vnd.docker.attestation.manifest.v1+json"
    assert manifest["subject"] == {"mediaType": "m", "digest": ABOUT.digest, "size": 1}
    empty = made.blobs[0]
    assert (empty.body, empty.media_type) == (b"{}", "application/vnd.oci.empty.v1+json")
    assert manifest["config"] == {
        "mediaType": empty.media_type,
        "digest": empty.descriptor.digest,
        "size": 2,
        "data": "e30=",
    }


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("busybox", "pkg:docker/busybox@latest?platform=linux%2Famd64"),
        ("localhost:5000/a/b:2", "pkg:docker/localhost:5000/a/b@2?platform=linux%2Famd64"),
    ],
)
def test_urls_of_images(name, url):
    assert package_url(reference.parse(name), HERE) == url
