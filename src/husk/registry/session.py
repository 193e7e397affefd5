"""One authorized exchange with a registry: ask; on 401 get a header for the scope; ask again, once."""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from husk.errors import SystemFault, Unauthorized
from husk.registry.auth import Authorizer, Credentials, TokenRefused, challenges_of
from husk.registry.challenges import Challenge
from husk.registry.failures import Refusal, read_refusal
from husk.registry.routes import same_origin
from husk.registry.transport import MakeBody, Transport, read_limited
from husk.text.digits import read_number

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_LARGEST_REFUSAL = 64 * 1024


class RegistryRefused(Exception):
    """A registry said no; callers know what they asked for and turn this into words."""

    def __init__(self, refusal: Refusal, pause: float = 0.0) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal
        self.pause = pause


class RegistrySession:
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
        # An upload may continue at another host, which is no business of the registry's credentials.
        ours, headers = same_origin(url, base), headers or {}
        header = self._authorizer.known(base, scope, who) if ours else ""
        try:
            for last in (False, True):
                sent = {**headers, **({"Authorization": header} if header else {})}
                async with self._transport.send(method, url, sent, body=body, since=base) as response:
                    if response.status in accepted:
                        yield response
                        return
                    # Whoever a redirect led to may not ask for the registry's credentials either.
                    ours = ours and same_origin(str(response.url), base)
                    challenges = challenges_of(response)
                    text = await read_limited(response, _LARGEST_REFUSAL, cut=True)
                    refusal = read_refusal(response.status, challenges, text)
                    pause = _retry_after(response)
                # Registries that are partly open hide the rest from strangers instead of asking who they are.
                hidden = refusal.status in (403, 404) and bool(who) and not header
                if last or not ours or not (refusal.status == 401 or hidden):
                    raise RegistryRefused(refusal, pause)
                if hidden:
                    _, challenges = await self.ping(base)
                header = await self._authorizer.satisfy(base, scope, who, challenges, header, url)
                if not header:
                    raise RegistryRefused(refusal, pause)
        except TokenRefused as error:
            if ",push" in scope:
                raise RegistryRefused(
                    error.refusal
                ) from error  # as the registry's own, in a push's last line: dockerd's way
            if isinstance(error, Unauthorized):
                # Told of a 401, the docker client would ask for a password in the middle of a pull.
                raise SystemFault(error.message) from error
            raise

    async def ping(self, base: str) -> tuple[int, list[Challenge]]:
        """Ask the registry without credentials; return the status, and the registry's own ways to authenticate."""
        async with self._transport.send("GET", f"{base}/v2/") as response:
            return response.status, challenges_of(response) if same_origin(str(response.url), base) else []


def _retry_after(response: "ClientResponse") -> float:
    return float(read_number(response.headers.get("Retry-After", "")) or 0)
