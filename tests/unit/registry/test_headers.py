"""Headers of answers with bytes and addresses that nobody expects."""

import pytest

from husk.errors import SystemFault
from husk.registry.headers import readable, resolve_location

BASE = "https://registry.test/v2/app/manifests/1"


@pytest.mark.parametrize(
    ("value", "text"),
    [("plain", "plain"), ("\u00fc\u20ac", "\u00fc\u20ac"), ("a\udcff\udce4b", "a\ufffd\ufffdb"), ("", "")],
)
def test_a_header_can_always_be_told_on(value: str, text: str) -> None:
    assert readable(value) == text


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/blob?a=%2F&b=c%3D#f", "https://registry.test/blob?a=%2F&b=c%3D#f"),
        ("other", "https://registry.test/v2/app/manifests/other"),
        ("//cdn.test:8443/b", "https://cdn.test:8443/b"),
        ("http://cdn.test/a b/\udce4", "http://cdn.test/a%20b/%E4"),
        ("", BASE),
        ("https://name:password@registry.test/b", "https://registry.test/b"),
        ("http://127.0.0.1@cdn.test/b", "http://cdn.test/b"),
    ],
)
def test_a_location_is_followed_from_where_it_stands(location: str, url: str) -> None:
    assert resolve_location(BASE, location) == url


@pytest.mark.parametrize(
    "location", ["http://[", "http://[::1", "http://a:b:c/", "http://a:99999/", "http://a:-1/", "//[\udcff"]
)
def test_a_location_that_is_none_is_refused(location: str) -> None:
    with pytest.raises(SystemFault, match="failed to parse Location header "):
        resolve_location(BASE, location)
