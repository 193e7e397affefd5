"""Statements about images."""

import json

import pytest

from husk.builder.exporters.attestations import attest, package_url
from husk.builder.jobs.results import Predicate
from husk.registry import reference
from husk.registry.manifest import Descriptor, Platform

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
