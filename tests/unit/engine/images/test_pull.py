"""Requests of a pull, and the things that it holds on to."""

import pytest

from husk.engine.images.pull import parse_pull_reference
from husk.engine.images.store import Pins
from husk.errors import InvalidParameter
from tests.unit.engine.records import digest

DIGEST = digest("x")


@pytest.mark.parametrize(
    ("image", "tag", "wanted"),
    [
        ("busybox", "1", "docker.io/library/busybox:1"),
        ("busybox", "", "docker.io/library/busybox"),
        ("busybox:", "", "docker.io/library/busybox"),
        ("busybox:2", "", "docker.io/library/busybox:2"),
        ("busybox:2", "1", "docker.io/library/busybox:1"),
        ("busybox", DIGEST, f"docker.io/library/busybox@{DIGEST}"),
        (f"busybox@{DIGEST}", "", f"docker.io/library/busybox@{DIGEST}"),
        ("localhost:5000/a/b", "c", "localhost:5000/a/b:c"),
    ],
)
def test_a_pull_names_one_image_or_a_repository(image: str, tag: str, wanted: str) -> None:
    assert str(parse_pull_reference(image, tag)) == wanted


@pytest.mark.parametrize(("image", "tag"), [("", ""), ("Busybox", ""), ("busybox", "a b"), ("busybox", "sha256:12")])
def test_what_names_nothing_is_refused(image: str, tag: str) -> None:
    with pytest.raises(InvalidParameter):
        parse_pull_reference(image, tag)


async def test_a_layer_is_held_until_the_last_one_lets_go() -> None:
    pins = Pins()
    async with pins.hold(["a", "b"]):
        async with pins.hold(["a"]):
            assert "a" in pins
        assert "a" in pins
    assert "a" not in pins and "b" not in pins


async def test_a_failure_lets_go_too() -> None:
    pins = Pins()
    with pytest.raises(ValueError):
        async with pins.hold(["a"]):
            raise ValueError
    assert "a" not in pins
