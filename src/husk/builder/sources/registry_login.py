"""The login of a build at registries: the client that started it. Its session is asked when a registry wants to know.

A client that fetches tokens itself is asked for those, and its password stays where it is.
"""

import logging
from collections.abc import Sequence

from msgspec import Struct

from husk.builder.solver.sessions import Session, TokenRequest
from husk.errors import HuskError
from husk.registry.auth import Credentials, KeptCredentials, Token
from husk.registry.reference import DOCKER_HUB, Reference

_HUB = "registry-1.docker.io"

log = logging.getLogger(__name__)


def login_at(reference: Reference, session: Session | None) -> Credentials | None:
    """For the registry of an image."""
    if session is None:
        return None
    host = _HUB if reference.domain == DOCKER_HUB else reference.domain
    return KeptCredentials(server_address=host, keeper=SessionKeeper(session, host))


class SessionKeeper(Struct, frozen=True):
    """`husk.registry.auth.TokenKeeper`. The same for one session and host, so that what it was told serves again."""

    session: Session
    host: str

    async def token(self, realm: str, service: str, scopes: Sequence[str], /) -> Token | None:
        """A client that cannot reach the place may have what we need to ask there ourselves."""
        request = TokenRequest(host=self.host, realm=realm, service=service, scopes=scopes)
        try:
            token = await self.session.token(request)
        except HuskError as error:
            log.info("the client of a build has no token for %s: %s", self.host, error)
            return None
        return Token(token.token, token.expires_in) if token and token.token else None

    async def credentials(self) -> Credentials:
        return await self.session.credentials(self.host)
