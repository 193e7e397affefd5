import pytest

from husk.errors import InvalidParameter
from husk.text.endpoints import HostPort, read_endpoint, write_endpoints


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("a", "a", 7),
        ("a.b:1", "a.b", 1),
        ("192.0.2.1:65535", "192.0.2.1", 65535),
        ("[::1]", "::1", 7),
        ("[::1]:2", "::1", 2),
    ],
)
def test_hosts_with_and_without_ports(text: str, host: str, port: int) -> None:
    found = read_endpoint(text, 7)
    assert found == HostPort(host, port)
    assert read_endpoint(str(found), 7) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":1",
        "a:",
        "a:0",
        "a:65536",
        "a:x",
        "::1",
        "[::1",
        "[::1]x",
        "[]:1",
        "a/b",
        "a b:1",
        "a\0b",
        "a\ud800",
        "a..b",
        "a" * 64,
        "a." * 127 + "a",
    ],
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(InvalidParameter):
        read_endpoint(text, 7)


def test_those_with_names_are_written_as_they_are_read() -> None:
    assert write_endpoints({"a": HostPort("192.0.2.1", 7), "b": HostPort("2001:db8::1", 9)}) == {
        "a": "192.0.2.1:7",
        "b": "[2001:db8::1]:9",
    }


@pytest.mark.parametrize("port", ["0" * 5000 + "5", "9" * 5000])
def test_a_port_of_thousands_of_digits_is_refused(port):
    with pytest.raises(InvalidParameter, match="not of the form"):
        read_endpoint(f"host:{port}", 1)
