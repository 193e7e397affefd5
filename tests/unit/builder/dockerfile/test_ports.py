import pytest

from husk.builder.dockerfile.configure import parse_ports
from husk.builder.dockerfile.errors import DockerfileError


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ("80", ["80/tcp"]),
        ("80/udp", ["80/udp"]),
        ("80/UDP", ["80/udp"]),
        ("80-82/sctp", ["80/sctp", "81/sctp", "82/sctp"]),
        ("8080:80", ["80/tcp"]),
        ("127.0.0.1:8080:80", ["80/tcp"]),
        ("[::1]:8080:80", ["80/tcp"]),
    ],
)
def test_ports(text, ports):
    assert parse_ports(text) == ports


@pytest.mark.parametrize("text", ["", "x", "80/icmp", "65536", "82-80", "80-", "80/", "999999"])
def test_what_is_no_port(text):
    with pytest.raises(DockerfileError):
        parse_ports(text)
