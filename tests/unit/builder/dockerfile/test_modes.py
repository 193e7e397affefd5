import pytest

from husk.builder.dockerfile.copy import parse_mode
from husk.builder.dockerfile.errors import DockerfileError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (None, "")),
        ("755", (0o755, "")),
        ("07777", (0o7777, "")),
        ("u+x", (None, "u+x")),
        ("a=rX,g-w,o=u", (None, "a=rX,g-w,o=u")),
        ("+t", (None, "+t")),
    ],
)
def test_modes(text, expected):
    assert parse_mode(text) == expected


@pytest.mark.parametrize("text", ["8", "10000", "u", "u+y", "u+x,", "rwx"])
def test_what_is_no_mode(text):
    with pytest.raises(DockerfileError, match="invalid chmod parameter"):
        parse_mode(text)
