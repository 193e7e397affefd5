"""How does one authorized exchange with a registry go? Ask; on 401 get a header for the scope; ask again, once."""

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from husk.errors import SystemFault
from husk.registry.auth import Authorizer, Credentials, TokenRefused
from husk.registry.challenges import Challenge, parse_challenges
from husk.registry.failures import Refusal, read_refusal
from husk.registry.transport import Body, Transport, read_limited

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_LARGEST_REFUSAL = 64 * 1024
_MOST_REDIRECTS = 10

MakeBody = Callable[[], Body]
"""Gives the request's body, anew for each try."""


class Refused(Exception):
    """A registry said no; callers know what they asked for and turn this into words."""

    def __init__(self, refusal: Refusal, pause: float = 0.0) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal
        self.pause = pause


class _Moved(Exception):
    """The body is wanted elsewhere, from its beginning."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url


class Session:
    """Exchanges with registries, each under a scope and somebody's name."""

    def __init__(self, transport: Transport, authorizer: Authorizer) -> None:
        self._transport = transport
        self._authorizer = authorizer

    @asynccontextmanager
    async def open(
        self,
        method: str,
        url: str,
        *,
        base: str,
        scope: str,
        who: Credentials,
        headers: Mapping[str, str] | None = None,
        body: MakeBody | None = None,
        accepted: Collection[int] = (200, 206),
    ) -> AsyncIterator["ClientResponse"]:
        """An answer with one of the `accepted` statuses; Refused with any other."""
        async with AsyncExitStack() as stack:
            for _ in range(_MOST_REDIRECTS):
                exchange = self._open(method, url, base, scope, who, headers or {}, body, accepted)
                try:
                    response = await stack.enter_async_context(exchange)
                    break
                except _Moved as moved:
                    self._transport.may_follow(method, url, moved.url)
                    url = moved.url
            else:
                raise SystemFault(f'{method.capitalize()} "{url}": stopped after {_MOST_REDIRECTS} redirects')
            yield response

    @asynccontextmanager
    async def _open(
        self,
        method: str,
        url: str,
        base: str,
        scope: str,
        who: Credentials,
        headers: Mapping[str, str],
        body: MakeBody | None,
        accepted: Collection[int],
    ) -> AsyncIterator["ClientResponse"]:
        # An upload may continue at another host, which is no business of the registry's credentials.
        ours = urlsplit(url).netloc == urlsplit(base).netloc
        header = self._authorizer.known(base, scope, who) if ours else ""
        try:
            for last in (False, True):
                sent = {**headers, **({"Authorization": header} if header else {})}
                made = body() if body else None
                async with self._transport.send(method, url, sent, body=made, follow=made is None) as response:
                    if response.status in accepted:
                        yield response
                        return
                    if made is not None and response.status in (307, 308) and "Location" in response.headers:
                        raise _Moved(urljoin(str(response.url), response.headers["Location"]))
                    challenges = parse_challenges(response.headers.getall("WWW-Authenticate", []))
                    text = await read_limited(response, _LARGEST_REFUSAL, cut=True)
                    refusal = read_refusal(response.status, challenges, text)
                    pause = _retry_after(response)
                # Registries that are partly open hide the rest from strangers instead of asking who they are.
                hidden = refusal.status in (403, 404) and bool(who) and not header
                if last or not ours or not (refusal.status == 401 or hidden):
                    raise Refused(refusal, pause)
                if hidden:
                    _, challenges = await self.ping(base)
                header = await self._authorizer.satisfy(base, scope, who, challenges, header, url)
                if not header:
                    raise Refused(refusal, pause)
        except TokenRefused as error:
            raise SystemFault(error.message) from error

    async def ping(self, base: str) -> tuple[int, list[Challenge]]:
        """How the registry answers to nobody in particular: the status, and the ways to authenticate."""
        async with self._transport.send("GET", f"{base}/v2/") as response:
            return response.status, parse_challenges(response.headers.getall("WWW-Authenticate", []))


def _retry_after(response: "ClientResponse") -> float:
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isascii() and value.isdigit() else 0.0
