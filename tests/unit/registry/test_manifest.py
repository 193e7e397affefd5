"""Manifests of both families read the same, and the right platform is chosen out of an index."""

import contextlib
import json
import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.errors import HuskError, InvalidParameter, NotFound, SystemFault
from husk.registry.manifest import (
    DOCKER_LIST,
    DOCKER_MANIFEST,
    OCI_INDEX,
    OCI_MANIFEST,
    Descriptor,
    ImageManifest,
    Index,
    Platform,
    choose_platform,
    detected_platform,
    host_platform,
    normalize,
    parse_manifest,
    parse_platform,
    referenced,
)
from tests.support.registry import Media, make_image, make_index

DIGEST = "sha256:" + "a" * 64


def entry(text: str | None, mark: str = "a") -> Descriptor:
    platform = None
    if text is not None:
        os, architecture, *variant = text.split("/")
        platform = Platform(architecture, os, "".join(variant))
    return Descriptor(media_type=OCI_MANIFEST, digest="sha256:" + mark * 64, size=1, platform=platform)


@pytest.mark.parametrize("media", ["oci", "docker"])
def test_an_image_manifest_names_its_config_and_layers(media: Media) -> None:
    image = make_image([b"one", b"two"], media=media)
    manifest = parse_manifest(image.manifest, image.media_type + "; charset=utf-8")
    assert isinstance(manifest, ImageManifest)
    assert manifest.media_type == image.media_type
    assert manifest.config.digest == image.config_digest
    assert [layer.digest for layer in manifest.layers] == image.layer_digests
    assert [layer.size for layer in manifest.layers] == [len(image.blobs[digest]) for digest in image.layer_digests]


@pytest.mark.parametrize("media", ["oci", "docker"])
def test_an_index_names_its_platforms(media: Media) -> None:
    images = [make_image([b"x"], architecture="amd64"), make_image([b"x"], architecture="arm", variant="v7")]
    index = parse_manifest(*make_index(images, media))
    assert isinstance(index, Index)
    assert [str(one.platform) for one in index.manifests] == ["linux/amd64", "linux/arm/v7"]
    assert index.media_type == (OCI_INDEX if media == "oci" else DOCKER_LIST)


@pytest.mark.parametrize("announced", ["", "application/json", "application/octet-stream", "text/plain"])
def test_a_server_that_does_not_know_manifests_may_still_serve_them(announced: str) -> None:
    image = make_image([b"x"], media="docker")
    manifest = parse_manifest(image.manifest, announced)
    assert isinstance(manifest, ImageManifest) and manifest.media_type == DOCKER_MANIFEST
    bare = json.dumps({"schemaVersion": 2, "manifests": []}).encode()
    assert isinstance(parse_manifest(bare, announced), Index)


CONFIG = {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": DIGEST, "size": 1}


@pytest.mark.parametrize(
    ("document", "announced", "message"),
    [
        ({"schemaVersion": 1}, "application/json", "schema 1 is not supported"),
        ({}, "application/vnd.docker.distribution.manifest.v1+prettyjws", "schema 1 is not supported"),
        ({"schemaVersion": 2}, OCI_MANIFEST, "names no config"),
        ({"config": CONFIG, "layers": [], "manifests": []}, OCI_MANIFEST, "ambiguous"),
        ({"config": CONFIG, "layers": []}, OCI_INDEX, "does not have the fields"),
        ({"manifests": []}, OCI_MANIFEST, "does not have the fields"),
        ({"mediaType": DOCKER_MANIFEST, "config": CONFIG}, OCI_MANIFEST, "but says it is"),
        ({"mediaType": "application/zip"}, "text/html", "unsupported manifest media type application/zip"),
        (
            {"config": CONFIG | {"mediaType": "application/vnd.cncf.helm.config.v1+json"}},
            OCI_MANIFEST,
            "unsupported media type application/vnd.cncf.helm.config.v1+json",
        ),
        ({"config": CONFIG | {"digest": "sha256:../../etc"}}, OCI_MANIFEST, "invalid descriptor"),
        ({"config": CONFIG, "layers": [CONFIG | {"size": -1}]}, OCI_MANIFEST, "negative size"),
        ({"manifests": [CONFIG | {"size": 1 << 63}]}, OCI_INDEX, "a size of more than 63 bits"),
        ({"config": CONFIG, "layers": [{"digest": DIGEST}]}, OCI_MANIFEST, "not an image manifest"),
        ({"manifests": [{"digest": "md5:1", "size": 1}]}, OCI_INDEX, "invalid descriptor"),
        ([], OCI_MANIFEST, "not an image manifest"),
    ],
)
def test_a_manifest_that_cannot_be_trusted_is_refused(document: object, announced: str, message: str) -> None:
    with pytest.raises(SystemFault, match=re.escape(message)):
        parse_manifest(json.dumps(document).encode(), announced)


@given(st.binary(max_size=200), st.sampled_from(["", OCI_MANIFEST, OCI_INDEX]))
def test_no_bytes_break_the_parser(body: bytes, announced: str) -> None:
    with contextlib.suppress(HuskError):
        parse_manifest(body, announced)


@pytest.mark.parametrize("field", ["layers", "manifests"])
def test_a_manifest_of_more_values_than_any_image_has_is_refused(field: str) -> None:
    described = f'{{"digest":"sha256:{"a" * 64}","size":1}}'
    listed = ",".join([described] * 40_000)
    body = f'{{"schemaVersion":2,"config":{described},"{field}":[{listed}]}}'.encode()
    with pytest.raises(SystemFault, match="more than 65536 values"):
        parse_manifest(body, "")
    assert referenced(body) == []


@pytest.mark.parametrize(
    ("wanted", "offered", "chosen"),
    [
        ("linux/amd64", ["linux/arm64", "linux/amd64"], 1),
        ("linux/amd64", ["linux/386", "linux/amd64/v1"], 1),
        ("linux/amd64", ["linux/386", "linux/arm64"], 0),
        ("linux/amd64", ["unknown/unknown", None, "linux/amd64"], 2),
        ("linux/amd64", ["unknown/unknown", None], 1),
        ("linux/amd64/v3", ["linux/amd64", "linux/amd64/v2", "linux/amd64/v4"], 1),
        ("linux/arm64", ["linux/arm/v7", "linux/arm64/v8"], 1),
        ("linux/arm64/v8", ["linux/arm64"], 0),
        ("linux/arm64", ["linux/arm/v6", "linux/arm/v7"], 1),
        ("linux/arm/v7", ["linux/arm/v5", "linux/arm/v6"], 1),
        ("linux/arm", ["linux/arm/v6", "linux/arm/v7"], 1),
        ("linux/aarch64", ["linux/arm64"], 0),
        ("linux/amd64", ["linux/amd64", "linux/amd64"], 0),
    ],
)
def test_the_best_runnable_entry_is_chosen(wanted: str, offered: list[str | None], chosen: int) -> None:
    entries = [entry(text, "abcdef"[number]) for number, text in enumerate(offered)]
    assert choose_platform(Index(entries), parse_platform(wanted)) is entries[chosen]


@pytest.mark.parametrize(
    ("wanted", "offered"),
    [
        ("linux/amd64", []),
        ("linux/amd64", ["linux/arm64", "windows/amd64", "linux/amd64/v3"]),
        ("linux/arm/v6", ["linux/arm/v7", "linux/arm64"]),
        ("linux/386", ["linux/amd64"]),
    ],
)
def test_an_index_without_a_runnable_entry_is_an_error(wanted: str, offered: list[str]) -> None:
    with pytest.raises(NotFound) as error:
        choose_platform(Index([entry(text) for text in offered]), parse_platform(wanted))
    assert error.value.message == f"no matching manifest for {wanted} in the manifest list entries"


@pytest.mark.parametrize(
    ("text", "platform"),
    [
        ("linux/amd64", "linux/amd64"),
        ("Linux/X86_64", "linux/amd64"),
        ("linux/arm64/v8", "linux/arm64"),
        ("linux/arm/7", "linux/arm/v7"),
        ("linux/armhf", "linux/arm/v7"),
        ("s390x", "linux/s390x"),
        ("armel", "linux/arm/v6"),
        ("linux", str(host_platform())),
        ("", str(host_platform())),
    ],
)
def test_platforms_have_one_spelling(text: str, platform: str) -> None:
    assert str(parse_platform(text)) == platform


@pytest.mark.parametrize(
    ("machine", "named", "told"),
    [
        ("x86_64", "linux/amd64", "linux/amd64"),
        ("aarch64", "linux/arm64", "linux/arm64/v8"),
        ("armv7l", "linux/arm/v7", "linux/arm/v7"),
    ],
)
def test_this_host(monkeypatch: pytest.MonkeyPatch, machine: str, named: str, told: str) -> None:
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(machine=machine))
    assert (str(host_platform()), str(detected_platform())) == (named, told)
    with pytest.raises(NotFound, match=f"no matching manifest for {told} in"):
        choose_platform(Index([entry("linux/s390x")]), detected_platform())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("linux/foo/bar/baz", '"linux/foo/bar/baz": cannot parse platform specifier: invalid argument'),
        ("beos", '"beos": unknown operating system or architecture: invalid argument'),
        ("linux/", '"" is an invalid component of "linux/"'),
        ("linux/a b", '"a b" is an invalid component of "linux/a b"'),
        ("a/" * 2_000_000, f'"{"a/" * 128}...": cannot parse platform specifier: invalid argument'),
    ],
)
def test_what_is_no_platform_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        parse_platform(text)
    assert refused.value.message.startswith(message)


@given(st.sampled_from(["linux", "Linux", "windows"]), st.text(max_size=8), st.text(max_size=4))
def test_normalizing_twice_changes_nothing_more(os: str, architecture: str, variant: str) -> None:
    once = normalize(Platform(architecture, os, variant))
    assert normalize(once) == once
