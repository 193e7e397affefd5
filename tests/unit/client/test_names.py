import pytest

from husk.client.names import DOCKER_HUB, host_of, platform_document, registry_of, split_tag, with_tag
from husk.errors import InvalidParameter


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a", ("a", "")),
        ("a:1", ("a", "1")),
        ("h:5/a", ("h:5/a", "")),
        ("h:5/a:1", ("h:5/a", "1")),
    ],
)
def test_names_and_tags(name, parts):
    assert split_tag(name) == parts


@pytest.mark.parametrize(
    ("name", "whole"), [("a", "a:latest"), ("a:1", "a:1"), ("a@sha256:1", "a@sha256:1"), ("h:5/a", "h:5/a:latest")]
)
def test_the_tag_that_is_meant(name, whole):
    assert with_tag(name) == whole


@pytest.mark.parametrize(
    ("name", "registry"),
    [
        ("busybox", DOCKER_HUB),
        ("team/app:1", DOCKER_HUB),
        ("docker.io/team/app", DOCKER_HUB),
        ("ghcr.io/team/app", "ghcr.io"),
        ("localhost/app", "localhost"),
        ("host:5000/app:1", "host:5000"),
    ],
)
def test_registries(name, registry):
    assert registry_of(name) == registry


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("", DOCKER_HUB),
        (DOCKER_HUB, DOCKER_HUB),
        ("https://ghcr.io/v2/", "ghcr.io"),
        ("http://host:5000", "host:5000"),
        ("registry-1.docker.io", DOCKER_HUB),
    ],
)
def test_addresses_as_credentials_know_them(address, host):
    assert host_of(address) == host


def test_platforms():
    assert platform_document("") is None
    assert platform_document("linux/arm64") == '{"os":"linux","architecture":"arm64"}'
    for wrong in ("arm64", "linux/", "a/b/c/d"):
        with pytest.raises(InvalidParameter, match="expected for example"):
            platform_document(wrong)
