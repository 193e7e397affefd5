"""Manifests and indexes."""

import json

import pytest

from husk.builder.exporters import documents
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
