import pytest

from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.flags import FLAG, LIST, VALUE, Flags

KNOWN = {"link": FLAG, "from": VALUE, "exclude": LIST}


def test_flags():
    flags = Flags(["--link", "--from=a=b", "--exclude=x", "--exclude=y"], KNOWN)
    assert flags.is_true("link")
    assert flags.value("from") == "a=b"
    assert flags.values("exclude") == ["x", "y"]
    assert flags.names == {"link", "from", "exclude"}


def test_what_was_not_said():
    flags = Flags(["--link=FALSE"], KNOWN)
    assert flags.maybe_true("link") is False
    assert flags.value("from") == ""
    assert "from" not in flags
    assert Flags([], KNOWN).maybe_true("link") is None


@pytest.mark.parametrize(
    "written", [["--x"], ["--link=x"], ["--link="], ["--from"], ["--link", "--link"], ["--exclude"]]
)
def test_refusals(written):
    with pytest.raises(DockerfileError):
        Flags(written, KNOWN)
