"""One authorized exchange: asked, challenged, asked again once, and never with our name at somebody else's."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from multidict import CIMultiDict

from husk.errors import Forbidden, SystemFault, Unauthorized
from husk.registry.auth import Authorizer, Credentials, TokenRefused, token_refused
from husk.registry.failures import Refusal
from husk.registry.session import RegistryRefused, RegistrySession
from husk.registry.transport import Transport

BASE, URL = "https://registry.test", "https://registry.test/v2/app/blobs/x"
NOBODY, ME = Credentials(), Credentials("me", "secret")
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="https://auth.test/token",service="registry.test"'}


class FakeResponse:
    def __init__(self, status: int, url: str, **headers: str) -> None:
        self.status, self.url = status, url
        self.headers = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
        self.content = self

    async def iter_any(self) -> AsyncIterator[bytes]:
        yield b""

    async def read(self, size: int = -1) -> bytes:
        return b""


class FakeWeb:
    """Answers by URL: a status, or a function of the headers that were sent."""

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[dict[str, str]], tuple[int, dict[str, str]]]] = {}
        self.sent: list[tuple[str, str, str]] = []
        self.ends_at: dict[str, str] = {}  # where redirects lead

    @asynccontextmanager
    async def send(
        self, method: str, url: str, headers: Any = None, *, body: object = None, since: str = ""
    ) -> AsyncIterator[FakeResponse]:
        headers = headers or {}
        self.sent.append((method, url, headers.get("Authorization", "")))
        status, answered = self.answers[url](headers)
        yield FakeResponse(status, self.ends_at.get(url, url), **answered)


class FakeAuthorizer:
    def __init__(self) -> None:
        self.header, self.kept = "Bearer token", ""
        self.challenged: list[tuple[int, str]] = []
        self.fails: TokenRefused | None = None

    def known(self, base: str, scope: str, who: Credentials) -> str:
        return self.kept

    async def satisfy(
        self, base: str, scope: str, who: Credentials, challenges: list[Any], refused: str, url: str
    ) -> str:
        self.challenged.append((len(challenges), refused))
        if self.fails is not None:
            raise self.fails
        return "" if self.header == refused else self.header


class House:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.web, self.authorizer = FakeWeb(), FakeAuthorizer()
        self.session = RegistrySession(cast(Transport, self.web), cast(Authorizer, self.authorizer))

        async def nothing(response: object, limit: int, cut: bool) -> bytes:
            return b""

        monkeypatch.setattr("husk.registry.session.read_limited", nothing)

    async def ask(self, url: str = URL, who: Credentials = NOBODY, **more: Any) -> int:
        asked = self.session.open("GET", url, base=BASE, scope="repository:app:pull", who=who, **more)
        async with asked as response:
            return response.status


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> House:
    return House(monkeypatch)


def wants(token: str, otherwise: int = 401) -> Callable[[dict[str, str]], tuple[int, dict[str, str]]]:
    return lambda sent: (200, {}) if sent.get("Authorization") == token else (otherwise, CHALLENGE)


async def test_a_challenge_is_answered_once(house: House) -> None:
    house.web.answers[URL] = wants("Bearer token")
    assert await house.ask() == 200
    assert [sent[2] for sent in house.web.sent] == ["", "Bearer token"]
    house.authorizer.kept = "Bearer token"
    assert await house.ask() == 200 and len(house.web.sent) == 3


async def test_a_second_refusal_is_the_answer(house: House) -> None:
    house.web.answers[URL] = wants("Bearer other")
    with pytest.raises(RegistryRefused) as caught:
        await house.ask()
    assert caught.value.refusal.status == 401 and len(house.web.sent) == 2
    house.authorizer.kept = "Bearer token"
    with pytest.raises(RegistryRefused):
        await house.ask()
    assert house.authorizer.challenged[-1] == (1, "Bearer token"), "what was refused is not offered again"


async def test_what_is_hidden_from_strangers_is_asked_for_with_a_name(house: House) -> None:
    house.web.answers |= {URL: wants("Bearer token", 404), f"{BASE}/v2/": lambda sent: (401, CHALLENGE)}
    assert await house.ask(who=ME) == 200
    assert [url for _, url, _ in house.web.sent] == [URL, f"{BASE}/v2/", URL]
    with pytest.raises(RegistryRefused):
        await house.ask(who=NOBODY)
    assert len(house.web.sent) == 4, "who has no name asks no further"


async def test_nobody_else_hears_our_name(house: House) -> None:
    elsewhere = "https://storage.test/upload"
    house.web.answers[elsewhere] = lambda sent: (401, CHALLENGE)
    house.authorizer.kept = "Bearer token"
    with pytest.raises(RegistryRefused):
        await house.ask(elsewhere, ME)
    assert house.web.sent == [("GET", elsewhere, "")] and house.authorizer.challenged == []


@pytest.mark.parametrize("elsewhere", ["http://registry.test/upload", "https://registry.test:444/upload"])
async def test_another_scheme_or_port_is_somebody_else(house: House, elsewhere: str) -> None:
    house.web.answers[elsewhere] = lambda sent: (401, CHALLENGE)
    house.authorizer.kept = "Bearer token"
    with pytest.raises(RegistryRefused):
        await house.ask(elsewhere, ME)
    assert house.web.sent == [("GET", elsewhere, "")] and house.authorizer.challenged == []


async def test_whoever_a_redirect_led_to_gets_no_credentials_by_a_challenge(house: House) -> None:
    house.web.answers |= {URL: lambda sent: (401, CHALLENGE), f"{BASE}/v2/": lambda sent: (401, CHALLENGE)}
    house.web.ends_at = {URL: "https://storage.test/blob", f"{BASE}/v2/": "https://storage.test/v2/"}
    with pytest.raises(RegistryRefused):
        await house.ask(who=ME)
    assert house.authorizer.challenged == []
    assert await house.session.ping(BASE) == (401, [])


@pytest.mark.parametrize(
    ("header", "pause"), [("7", 7.0), ("", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0), ("-1", 0.0)]
)
async def test_a_registry_that_is_busy_says_for_how_long(house: House, header: str, pause: float) -> None:
    house.web.answers[URL] = lambda sent: (429, {"Retry-After": header} if header else {})
    with pytest.raises(RegistryRefused) as caught:
        await house.ask()
    assert caught.value.pause == pause


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, "UNAUTHORIZED", SystemFault),
        (403, "DENIED", Forbidden),
        (403, "", SystemFault),
        (429, "TOOMANYREQUESTS", SystemFault),
    ],
)
async def test_who_gets_no_token_hears_why(house: House, status: int, code: str, kind: type[Exception]) -> None:
    house.web.answers[URL] = wants("Bearer token")
    house.authorizer.fails = token_refused(URL, Refusal(status, code, "the account is locked"))
    with pytest.raises(kind, match="the account is locked") as caught:
        await house.ask(who=ME)
    assert not isinstance(caught.value, Unauthorized)
