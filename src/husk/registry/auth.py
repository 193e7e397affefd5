"""Authorization headers that satisfy a registry.

A registry that wants one answers 401 with a challenge. Basic means name and password with every request; Bearer means a
token from the token server (realm) that the challenge names, for the scope of the request, got with name and password
(GET), with an identity token (POST, OAuth2), or with nothing at all for public images. Headers are kept per registry,
scope and credentials until they expire, so that only the first request of a pull meets a 401.
"""

import asyncio
import base64
import binascii
import json
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from husk.errors import Forbidden, HuskError, InvalidParameter, SystemFault, Unauthorized
from husk.registry.challenges import Challenge, parse_challenges
from husk.registry.failures import Refusal, read_refusal, said_of
from husk.registry.headers import readable
from husk.registry.routes import authority
from husk.registry.transport import Transport, read_limited
from husk.text.documents import MalformedDocument, decode
from husk.text.urls import split_url

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_CLIENT_ID = "husk"
_LARGEST_TOKEN = 1024 * 1024
_SHORTEST_LIFE = 60
_LONGEST_LIFE = 3600


class Credentials(msgspec.Struct, frozen=True):
    """The name and the secrets of a client at one registry; kept out of logs and tracebacks."""

    username: str = ""
    password: str = ""
    identity_token: str = ""
    registry_token: str = ""
    server_address: str = ""

    def __repr__(self) -> str:
        return f"Credentials(username={self.username!r}, server_address={self.server_address!r})"

    def __bool__(self) -> bool:
        return bool(self.username or self.password or self.identity_token or self.registry_token)

    def basic(self) -> str:
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()


NOBODY = Credentials()


class Token(msgspec.Struct, frozen=True):
    """A registry's token, and the seconds that it is good for."""

    token: str
    life: float

    def __repr__(self) -> str:
        return f"Token(life={self.life})"


class TokenKeeper(Protocol):
    """Somebody else who knows who the client is at one registry, and may get tokens in its place. Hashable."""

    async def token(self, realm: str, service: str, scopes: Sequence[str], /) -> Token | None:
        """None if that is left to us."""
        ...

    async def credentials(self) -> Credentials: ...


class KeptCredentials(Credentials, frozen=True):
    """Those that are with their keeper until they are needed: a token is better, for it says no password."""

    keeper: TokenKeeper | None = None

    def __bool__(self) -> bool:
        return True


def parse_auth_header(value: str) -> Credentials | None:
    """The credentials in an X-Registry-Auth header: JSON in base64 of either alphabet; None if it names nobody."""
    if not value.strip():
        return None
    compact = value.strip().rstrip("=").replace("-", "+").replace("_", "/")
    try:
        text = base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
        document = json.loads(text)
    except (binascii.Error, ValueError, RecursionError) as error:
        raise InvalidParameter(f"invalid X-Registry-Auth header: {error}") from error
    if document is None:
        return None
    return credentials_from(document, "X-Registry-Auth header") or None


def credentials_from(document: object, where: str) -> Credentials:
    """The credentials in an AuthConfig document of the API (field names in any case: docker-py sends both)."""
    if not isinstance(document, dict):
        raise InvalidParameter(f"invalid {where}: expected an object")
    fields: dict[str, str] = {}
    for key, value in document.items():
        if not isinstance(value, str | None):
            raise InvalidParameter(f"invalid {where}: {key} must be a string")
        fields[str(key).lower()] = value or ""
    username, password = fields.get("username", ""), fields.get("password", "")
    if not username and fields.get("auth"):
        try:
            username, _, password = base64.b64decode(fields["auth"], validate=True).decode().partition(":")
        except ValueError as error:
            raise InvalidParameter(f"invalid {where}: auth is not base64 of name:password") from error
    return Credentials(
        username=username,
        password=password,
        identity_token=fields.get("identitytoken", ""),
        registry_token=fields.get("registrytoken", ""),
        server_address=fields.get("serveraddress", ""),
    )


class _TokenAnswer(msgspec.Struct):
    """The answer of a token service; a `null` in it counts as nothing said, as in Go's clients."""

    token: str | None = None
    access_token: str | None = None
    refresh_token: str | None = None
    expires_in: float | None = None


class _Entry(msgspec.Struct):
    header: str = ""
    expires: float = 0.0
    lock: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)


_Key = tuple[str, str, Credentials]


class Authorizer:
    """The Authorization headers that were won so far."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._entries: dict[_Key, _Entry] = {}

    def known(self, base: str, scope: str, credentials: Credentials) -> str:
        """The header to try first, "" if none is known."""
        entry = self._entries.get((base, scope, credentials))
        return entry.header if entry is not None and entry.expires > time.monotonic() else ""

    async def satisfy(
        self, base: str, scope: str, credentials: Credentials, challenges: Sequence[Challenge], refused: str, url: str
    ) -> str:
        """A header that answers `challenges`, other than the `refused` one; "" if there is nothing better to offer."""
        self._drop_expired()
        entry = self._entries.setdefault((base, scope, credentials), _Entry())
        async with entry.lock:  # several layers meet the same 401 at once: one of them gets the token
            if entry.header != refused and entry.expires > time.monotonic():
                return entry.header
            header, life, _ = await self.answer(base, scope, credentials, challenges, url)
            entry.header, entry.expires = header, time.monotonic() + life
            return "" if header == refused else header

    async def answer(
        self,
        base: str,
        scope: str,
        credentials: Credentials,
        challenges: Sequence[Challenge],
        url: str,
        offline: bool = False,
    ) -> tuple[str, float, str]:
        """A fresh header, the seconds that it is good for, and an identity token if `offline` asks for one."""
        by_scheme = {challenge.scheme: challenge for challenge in reversed(challenges)}
        bearer = by_scheme.get("bearer")
        if isinstance(credentials, KeptCredentials) and credentials.keeper:
            if bearer and (kept := await self._kept_token(base, bearer.parameters, scope, credentials.keeper, url)):
                return f"Bearer {kept.token}", _life(kept.life), ""
            credentials = await credentials.keeper.credentials()
        if bearer:
            if credentials.registry_token:
                return f"Bearer {credentials.registry_token}", _LONGEST_LIFE, ""
            return await self._token(base, bearer.parameters, scope, credentials, url, offline)
        if "basic" in by_scheme:
            if not credentials.username:
                raise SystemFault(f'Get "{url}": no basic auth credentials')
            return credentials.basic(), _LONGEST_LIFE, ""
        return "", 0, ""

    async def _kept_token(
        self, base: str, challenge: Mapping[str, str], scope: str, keeper: TokenKeeper, url: str
    ) -> Token | None:
        realm = await self._check_realm(challenge.get("realm", ""), url)
        return await keeper.token(realm, challenge.get("service", ""), _asked(scope, challenge).split())

    async def _token(
        self, base: str, challenge: Mapping[str, str], scope: str, credentials: Credentials, url: str, offline: bool
    ) -> tuple[str, float, str]:
        # A registry that is open may send strangers anywhere: they have nothing to lose.
        since = base if base.startswith("http:") and not credentials else ""
        realm = await self._check_realm(challenge.get("realm", ""), url, since)
        query = {"service": challenge.get("service", ""), "scope": _asked(scope, challenge)}
        if credentials.identity_token:
            form = {"grant_type": "refresh_token", "refresh_token": credentials.identity_token}
            answer = await self._ask(realm, url, form=_filled(query | form | {"client_id": _CLIENT_ID}), since=since)
        else:
            headers: dict[str, str] = {}
            if credentials.username:
                query["account"] = credentials.username
                headers["Authorization"] = credentials.basic()
            if offline:
                query |= {"offline_token": "true", "client_id": _CLIENT_ID}
            # The scope may name several repositories, separated by spaces: one parameter each.
            scopes = [("scope", one) for one in query.pop("scope").split()]
            encoded = urllib.parse.urlencode([*_filled(query).items(), *scopes])
            answer = await self._ask(f"{realm}{'&' if '?' in realm else '?'}{encoded}", url, headers, since=since)
        token = answer.token or answer.access_token
        if not token:
            raise SystemFault(f'Get "{url}": authorization server did not include a token in the response')
        return f"Bearer {token}", _life(answer.expires_in or 0), answer.refresh_token or ""

    async def _ask(
        self,
        where: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
        since: str = "",
    ) -> _TokenAnswer:
        async with self._transport.send("POST" if form else "GET", where, headers, form, since=since) as response:
            body = await read_limited(response, _LARGEST_TOKEN, cut=True)
            if response.status == 200:
                try:
                    return decode(body, _TokenAnswer)
                except MalformedDocument as error:
                    why = said_of(body, error)
                    raise SystemFault(f'Get "{url}": unable to decode token response: {why}') from error
            refusal = read_refusal(response.status, challenges_of(response), body)
            raise token_refused(url, refusal)

    async def _check_realm(self, realm: str, url: str, since: str = "") -> str:
        """The challenge comes from the registry, and a password goes where it points: over plain HTTP only to a host
        that is insecure itself, whether we or the client carry it there."""
        try:
            parts = split_url(realm)
            known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            known = False
        if not known:
            raise SystemFault(f'Get "{url}": invalid token auth challenge realm: {realm!r}')
        if parts.scheme == "http" and not since and not await self._transport.is_insecure(authority(realm)):
            raise SystemFault(
                f'Get "{url}": refused to ask for a token over plain HTTP at {realm}: '
                f"{authority(realm)} is not an insecure registry"
            )
        return realm

    def _drop_expired(self) -> None:
        now = time.monotonic()
        for key in [key for key, entry in self._entries.items() if entry.expires < now and not entry.lock.locked()]:
            del self._entries[key]


def _asked(scope: str, challenge: Mapping[str, str]) -> str:
    """A challenge asks for what its one request needs; a token for pushing serves all requests of a push."""
    return scope if ",push" in scope else challenge.get("scope") or scope


def _life(seconds: float) -> float:
    return min(max(seconds, _SHORTEST_LIFE), _LONGEST_LIFE) * 0.9


def challenges_of(response: "ClientResponse") -> list[Challenge]:
    """Read the challenges of an answer: the ways in which the server wants requests to be authorized."""
    return parse_challenges(map(readable, response.headers.getall("WWW-Authenticate", [])))


class TokenRefused(HuskError):
    """The token server gives no token; its `refusal` says why, and decides which error it is, as dockerd's does."""

    def __init__(self, url: str, refusal: Refusal) -> None:
        super().__init__(f'Get "{url}": {refusal}')
        self.refusal = refusal


class _Unauthorized(TokenRefused, Unauthorized):
    """It does not accept the credentials."""


class _Denied(TokenRefused, Forbidden):
    """It accepts them, and they are not enough."""


class _Missing(TokenRefused, SystemFault):
    """It has none for now, or does not say why."""


def token_refused(url: str, refusal: Refusal) -> TokenRefused:
    return {"UNAUTHORIZED": _Unauthorized, "DENIED": _Denied}.get(refusal.code, _Missing)(url, refusal)


def _filled(parameters: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in parameters.items() if value}
