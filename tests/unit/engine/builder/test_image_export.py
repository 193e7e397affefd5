"""Names for an image that was built; what else the exporter does is told in test_solve."""

import pytest

from husk.engine.builder.image_export import names_of
from husk.errors import InvalidParameter


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("a", ["docker.io/library/a:latest"]),
        ("a:1, me/b:2,a:1", ["docker.io/library/a:1", "docker.io/me/b:2"]),
        ("registry.example:5000/x", ["registry.example:5000/x:latest"]),
    ],
)
def test_names(text, names):
    assert [str(name) for name in names_of({"name": text})] == names


@pytest.mark.parametrize("text", ["UPPER", "a@sha256:" + "0" * 64, "sha256:x"])
def test_names_that_no_image_can_have(text):
    with pytest.raises(InvalidParameter):
        names_of({"name": text})
