"""Versions: what is served passes, what is not is refused in dockerd's words, and words are no versions."""

import pytest

from husk.api.versioning import CURRENT, MINIMUM, Version, split_version
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
