import pytest

from husk.dashboard.guard import Guard, Listening, guarded, listening
from husk.errors import InvalidParameter

OWN = ["127.0.0.1:2380", "localhost:2380", "Localhost:2380", "[::1]:2380", "localhost.:2380"]
LOCAL = Guard(Listening("127.0.0.1", 2380), tls=False)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("127.0.0.1:2380", ("127.0.0.1", 2380)),
        ("[::1]:0", ("::1", 0)),
        ("localhost:80", ("localhost", 80)),
        ("0.0.0.0:443", ("0.0.0.0", 443)),
    ],
)
def test_addresses_are_read(text: str, found: tuple[str, int]) -> None:
    assert listening(text) == found


@pytest.mark.parametrize("text", ["", "2380", ":2380", "example.com:80", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:x"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match="expected ADDRESS:PORT"):
        listening(text)


@pytest.mark.parametrize("text", ["0.0.0.0:2380", "192.168.1.5:2380", "[::]:2380"])
def test_an_address_that_others_reach_needs_tls(text: str) -> None:
    with pytest.raises(InvalidParameter, match="without TLS"):
        guarded(text, tls=False)
    assert guarded(text, tls=True).port == 2380


@pytest.mark.parametrize("host", OWN)
def test_own_hosts_are_known(host: str) -> None:
    assert LOCAL.knows_host(host)


@pytest.mark.parametrize(
    "host",
    ["", "evil.example:2380", "evil.example", "127.0.0.1", "127.0.0.1:80", "localhost:2380@evil.example", "127.0.0.1:",
     "192.168.0.1:2380", "127.0.0.1:2380:2380", "localhost:02380000"],
)  # fmt: skip
def test_a_name_that_was_bent_to_us_is_not_known(host: str) -> None:
    assert not LOCAL.knows_host(host)


def test_names_may_be_added() -> None:
    guard = Guard(Listening("127.0.0.1", 2380), tls=False, names=["husk.example"])
    assert guard.knows_host("husk.example:2380")
    assert not guard.knows_host("other.example:2380")


def test_on_all_addresses_any_address_is_known_and_no_name() -> None:
    guard = Guard(Listening("0.0.0.0", 2380), tls=True)
    assert guard.knows_host("10.0.0.7:2380") and guard.knows_host("localhost:2380")
    assert not guard.knows_host("evil.example:2380")


def test_the_default_port_need_not_be_said() -> None:
    guard = Guard(Listening("127.0.0.1", 443), tls=True)
    assert guard.knows_host("localhost") and guard.url == "https://127.0.0.1"


@pytest.mark.parametrize(
    ("origin", "site", "own"),
    [
        ("http://127.0.0.1:2380", "", True),
        ("http://localhost:2380", "", False),
        ("https://127.0.0.1:2380", "", False),
        ("http://127.0.0.1:8080", "same-site", False),
        ("http://evil.example", "cross-site", False),
        ("null", "", False),
        ("", "", False),
        ("", "none", False),
        ("", "same-origin", True),
    ],
)
def test_only_pages_of_ours_are_an_own_origin(origin: str, site: str, own: bool) -> None:
    assert LOCAL.is_own_origin(origin, "127.0.0.1:2380", site) is own
