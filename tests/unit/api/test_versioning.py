"""Versions: what is served passes, what is not is refused in dockerd's words, and words are no versions."""

import pytest

from husk.api.versioning import CURRENT, MINIMUM, Version, minimum_version, split_version
from husk.errors import InvalidParameter


@pytest.mark.parametrize(
    "path", ["/_ping", "/version", "/volumes", "/volumes/v1.41", "/", "", "/v/info", "/vx1.41/info"]
)
def test_a_path_without_version_means_the_newest(path: str) -> None:
    assert split_version(path) == (CURRENT, path)


@pytest.mark.parametrize("minor", range(MINIMUM.minor, CURRENT.minor + 1))
def test_every_served_version_passes(minor: int) -> None:
    assert split_version(f"/v1.{minor}/images/a/b/json") == (Version(1, minor), "/images/a/b/json")


@pytest.mark.parametrize(
    ("text", "version"), [("1.40.1", Version(1, 40)), ("01.040", Version(1, 40)), ("1.40.", Version(1, 40))]
)
def test_odd_spellings_are_read_as_numbers(text: str, version: Version) -> None:
    assert split_version(f"/v{text}/info") == (version, "/info")


@pytest.mark.parametrize("text", ["1.56", "1.99", "2", "2.0", "1.55.1", "1." + "9" * 5000])
def test_a_newer_version_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        split_version(f"/v{text}/info")
    assert caught.value.message == f"client version {text} is too new. Maximum supported API version is 1.55"


@pytest.mark.parametrize("text", ["1.23", "1.2", "0", "1", ".", "1..24"])
def test_an_older_version_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        split_version(f"/v{text}/info")
    assert caught.value.message == (
        f"client version {text} is too old. Minimum supported API version is 1.24, "
        "please upgrade your client to a newer version"
    )


def test_a_version_alone_names_nothing() -> None:
    assert split_version("/v1.41") == (Version(1, 41), "")


def test_a_daemon_may_serve_newer_versions_only() -> None:
    assert minimum_version("") == MINIMUM
    minimum = minimum_version("1.44")
    assert split_version("/v1.44/info", minimum) == (Version(1, 44), "/info")
    assert split_version("/info", minimum) == (CURRENT, "/info")
    for text in ("1.43", "1.43.9", "1.24"):
        with pytest.raises(InvalidParameter) as caught:
            split_version(f"/v{text}/info", minimum)
        assert caught.value.message == (
            f"client version {text} is too old. Minimum supported API version is 1.44, "
            "please upgrade your client to a newer version"
        )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("v1.44", 'API version must be provided without "v" prefix'),
        ("1.23", "minimum supported API version is 1.24: 1.23"),
        ("x", "minimum supported API version is 1.24: x"),
        ("1.56", "maximum supported API version is 1.55: 1.56"),
        ("1.44.1", "it has the form 1.24: 1.44.1"),
    ],
)
def test_a_minimum_that_cannot_be_is_told(text: str, fault: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        minimum_version(text)
    assert caught.value.message == f"invalid DOCKER_MIN_API_VERSION: {fault}"
