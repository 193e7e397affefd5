"""The way to a host: open by literal addresses, listed names and names that are inside as a whole, else verified."""

import ipaddress
from collections.abc import Sequence

import pytest

from husk.config import NO_PROXIES, Proxies
from husk.registry.routes import Address, ConnectionWay, find_way, parse_insecure, proxy_for, resolve, same_origin
from tests.support.names import answer_names

LISTED = ["plain.example:5000", "http://bare.example/", "10.1.0.0/16", "192.168.7.7/32", "fd00::/8", "not/a/net"]
NAMES = {
    "local.test": ["127.0.0.1", "::1"],
    "inside.test": ["10.1.2.3", "fd00::7"],
    "rebound.test": ["127.0.0.1", "203.0.113.9"],
    "outside.test": ["203.0.113.9"],
    "localhost": ["127.0.0.1"],
    "away.localhost": ["203.0.113.9"],
    "registry-1.docker.io": ["127.0.0.1"],
}


@pytest.fixture(autouse=True)
def no_proxies_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


async def known(name: str) -> Sequence[Address]:
    return [ipaddress.ip_address(one) for one in NAMES.get(name, [])]


async def way_to(
    host: str, proxies: Proxies = NO_PROXIES, scheme: str = "https", listed: Sequence[str] = LISTED
) -> ConnectionWay:
    return await find_way(f"{scheme}://{host}/v2/", parse_insecure(listed), proxies, known)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:5000",
        "127.9.9.9",
        "[::1]:5000",
        "[::ffff:127.0.0.1]:5000",
        "localhost",
        "localhost:5000",
        "registry.localhost:5000",
        "plain.example:5000",
        "Plain.Example:5000",
        "bare.example",
        "10.1.2.3:443",
        "192.168.7.7",
        "[fd00::5]:80",
        "local.test:5000",
        "inside.test",
    ],
)
async def test_what_is_listed_or_inside_is_open(host: str) -> None:
    assert (await way_to(host)).open


@pytest.mark.parametrize(
    "host",
    [
        "plain.example",
        "plain.example:5001",
        "10.2.2.3",
        "8.8.8.8",
        "0.0.0.0",
        "[::ffff:8.8.8.8]",
        "rebound.test",
        "rebound.test:5000",
        "outside.test",
        "unknown.test",
        "localhost.example.invalid",
        "away.localhost",
        "plain.example:5000@outside.test",
        "registry-1.docker.io",
        "registry-1.docker.io.",
        "docker.io",
    ],
)
async def test_everything_else_is_verified(host: str) -> None:
    assert await way_to(host) == ConnectionWay(False)


@pytest.mark.parametrize("listed", [["registry-1.docker.io", "docker.io", "auth.docker.io"], ["0.0.0.0/0", "::/0"]])
async def test_docker_hub_is_verified_whatever_the_settings_say(listed: list[str]) -> None:
    for host in ("registry-1.docker.io", "docker.io", "auth.docker.io", "Index.Docker.IO"):
        assert await way_to(host, listed=listed) == ConnectionWay(False)


async def test_an_open_way_to_a_name_has_the_addresses_that_were_looked_at() -> None:
    for name in ("local.test", "inside.test"):
        assert [str(one) for one in (await way_to(name)).addresses] == NAMES[name]
    assert [str(one) for one in (await way_to("new.localhost")).addresses] == ["127.0.0.1", "::1"]


async def test_behind_a_proxy_names_are_open_only_by_the_list() -> None:
    behind = Proxies("http://proxy:1", "http://proxy:2", "")
    assert await way_to("inside.test", behind) == ConnectionWay(False, "http://proxy:2")
    assert await way_to("local.test", behind, "http") == ConnectionWay(False, "http://proxy:1")
    assert await way_to("plain.example:5000", behind) == ConnectionWay(True, "http://proxy:2")
    assert await way_to("10.1.2.3", behind) == ConnectionWay(True, "http://proxy:2")
    for here in ("localhost:5000", "registry.localhost:5000", "127.0.0.1:5000"):
        assert (await way_to(here, behind)).proxy is None and (await way_to(here, behind)).open
    # The TLS settings are one for the proxy and what is behind it.
    assert await way_to("plain.example:5000", Proxies("", "https://proxy:2", "")) == ConnectionWay(
        False, "https://proxy:2"
    )


async def test_names_are_looked_up_by_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_names(monkeypatch, {"two.test": [["127.0.0.1", "::1"]]})
    assert await resolve("two.test") == [ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")]
    assert await resolve("none.test") == []


def test_an_origin_is_scheme_host_and_port() -> None:
    assert same_origin("https://r.test/a", "https://R.test:443/b?c")
    for other in ("http://r.test/a", "https://r.test:444/a", "https://s.test/a", "https://r.test@s.test/a"):
        assert not same_origin("https://r.test/a", other)


def test_the_environments_proxy_is_used_except_for_loopback_and_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("http_proxy", "plainproxy:3128")
    monkeypatch.setenv("no_proxy", "internal.example")
    assert proxy_for("https://ghcr.io/v2/") == "http://proxy:3128"
    assert proxy_for("http://ghcr.io/v2/") == "http://plainproxy:3128"
    for direct in ("http://127.0.0.1:5000/", "http://[::1]/", "http://localhost:1/", "https://internal.example/v2/"):
        assert proxy_for(direct) is None
    monkeypatch.delenv("https_proxy")
    assert proxy_for("https://ghcr.io/v2/") is None


def test_the_settings_proxy_goes_before_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://other:3128")
    monkeypatch.setenv("no_proxy", "ghcr.io")
    settings = Proxies("http://plain:1", "http://secure:2", "internal.example,10.0.0.0/8,.corp.example,192.0.2.7:5000")
    assert proxy_for("https://ghcr.io/v2/", settings) == "http://secure:2"
    assert proxy_for("http://ghcr.io/v2/", settings) == "http://plain:1"
    for direct in (
        "https://internal.example/",
        "http://10.9.9.9:5000/",
        "https://a.corp.example/",
        "http://127.0.0.1/",
    ):
        assert proxy_for(direct, settings) is None
    assert proxy_for("http://192.0.2.7:5000/", settings) is None
    assert proxy_for("http://192.0.2.7:5001/", settings) == "http://plain:1"
