import pytest

from husk.cli.containers.ports import exposed, published
from husk.errors import InvalidParameter


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("80", {"80/tcp": [("", "")]}),
        ("8080:80", {"80/tcp": [("", "8080")]}),
        ("127.0.0.1:8080:80/udp", {"80/udp": [("127.0.0.1", "8080")]}),
        ("127.0.0.1::80", {"80/tcp": [("127.0.0.1", "")]}),
        ("[::1]:8080:80", {"80/tcp": [("::1", "8080")]}),
        ("[::1]::80", {"80/tcp": [("::1", "")]}),
        ("90-91:80-81", {"80/tcp": [("", "90")], "81/tcp": [("", "91")]}),
        ("8000-9000:80", {"80/tcp": [("", "8000-9000")]}),
        ("80-81", {"80/tcp": [("", "")], "81/tcp": [("", "")]}),
    ],
)
def test_published(given, found):
    assert published([given]) == found


def test_one_port_in_two_places():
    assert published(["1:80", "2:80"]) == {"80/tcp": [("", "1"), ("", "2")]}


def test_exposed():
    assert exposed(["80", "90-91/UDP"]) == ["80/tcp", "90/udp", "91/udp"]


@pytest.mark.parametrize("wrong", ["", "x", "80/icmp", "2-1", "70000", "1-3:1-2", "a:80", "1:2:3:4:x"])
def test_what_is_no_port(wrong):
    with pytest.raises(InvalidParameter, match="invalid"):
        published([wrong])


@pytest.mark.parametrize(("wrong", "side"), [("70000:80", "hostPort: '70000'"), ("80:70000", "containerPort: '70000'")])
def test_the_side_that_is_wrong_is_named(wrong, side):
    with pytest.raises(InvalidParameter, match=f"invalid {side}"):
        published([wrong])
