"""One client's session, as calls of its services: `husk.builder.solver.sessions.Session`."""

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager

from husk.builder.protocol.messages.session import (
    CheckAgentRequest,
    CredentialsRequest,
    CredentialsResponse,
    FetchTokenRequest,
    FetchTokenResponse,
    GetSecretRequest,
    GetSecretResponse,
    GetTokenAuthorityRequest,
    GetTokenAuthorityResponse,
)
from husk.builder.protocol.session import agent, files, policy
from husk.builder.protocol.session.calls import SessionCalls, in_our_words
from husk.builder.protocol.session.content import ClientContent
from husk.builder.solver.sessions import LARGEST_SECRET, LocalDirectory, SessionToken, TokenRequest
from husk.builder.solver.source_policy import Decision, Inquiry, SourceFacts
from husk.builder.store.sync.exchange import SyncChannel
from husk.errors import InvalidParameter, NotFound
from husk.registry.auth import NOBODY, Credentials
from husk.registry.manifest import Platform
from husk.rpc.grpc.connection import GrpcConnection
from husk.rpc.grpc.status import NOT_FOUND, UNAVAILABLE, UNIMPLEMENTED, GrpcError

_AUTH = "/moby.filesync.v1.Auth"
_SECRET = "/moby.buildkit.secrets.v1.Secrets/GetSecret"
_CHECK_AGENT = "/moby.sshforward.v1.SSH/CheckAgent"
_DEFAULT_AGENT = "default"
_CLIENT_ID = "husk"
_KEY_SIZE = 32

# A client makes keys of it that are good for this daemon, until it ends.
_salt = os.urandom(_KEY_SIZE)


class ClientSession:
    def __init__(self, connection: GrpcConnection, id: str, shared_key: str, methods: Collection[str]) -> None:
        self._id = id
        self._shared_key = shared_key
        self._calls = SessionCalls(connection, methods)

    @property
    def id(self) -> str:
        return self._id

    @property
    def shared_key(self) -> str:
        return self._shared_key

    # --- secrets and agents ------------------------------------------------------------------------------------------

    async def secret(self, id: str, /) -> bytes:
        try:
            answer = await self._calls.ask(_SECRET, GetSecretRequest(id=id).encode())
        except GrpcError as error:
            if error.code in (NOT_FOUND, UNIMPLEMENTED):
                raise NotFound(f"secret {id}: not found") from error
            with in_our_words(f"secret {id}"):
                raise
        data = GetSecretResponse.decode(answer).data
        if len(data) > LARGEST_SECRET:
            raise InvalidParameter(f"invalid secret size {len(data)} of {id}: {LARGEST_SECRET} bytes are the most")
        return data

    async def check_agent(self, id: str, /) -> None:
        with in_our_words(f"no SSH key {id or _DEFAULT_AGENT!r} forwarded from the client"):
            await self._calls.ask(_CHECK_AGENT, CheckAgentRequest(id=id or _DEFAULT_AGENT).encode())

    async def forward_agent(self, id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, /) -> None:
        await agent.forward(self._calls, id or _DEFAULT_AGENT, reader, writer)

    # --- registries --------------------------------------------------------------------------------------------------

    async def credentials(self, host: str, /) -> Credentials:
        if not self._calls.serves(f"{_AUTH}/Credentials"):
            return NOBODY
        with in_our_words(f"credentials for {host}"):
            answer = await self._calls.ask(f"{_AUTH}/Credentials", CredentialsRequest(host=host).encode())
        said = CredentialsResponse.decode(answer)
        if said.secret and not said.username:
            return Credentials(identity_token=said.secret, server_address=host)
        return Credentials(username=said.username, password=said.secret, server_address=host)

    async def token(self, request: TokenRequest, /) -> SessionToken | None:
        if not await self._fetches_tokens(request.host):
            return None
        question = FetchTokenRequest(
            client_id=_CLIENT_ID,
            host=request.host,
            realm=request.realm,
            service=request.service,
            scopes=list(request.scopes),
        )
        with in_our_words(f"token for {request.host}"):
            answer = await self._calls.ask(f"{_AUTH}/FetchToken", question.encode())
        said = FetchTokenResponse.decode(answer)
        return SessionToken(said.token, said.expires_in or SessionToken("").expires_in, said.issued_at)

    async def _fetches_tokens(self, host: str) -> bool:
        """Ask if the client wants to fetch tokens itself. If so it has a key to prove later that it is the same."""
        if not self._calls.serves(f"{_AUTH}/GetTokenAuthority"):
            return False
        question = GetTokenAuthorityRequest(host=host, salt=_salt)
        try:
            answer = await self._calls.ask(f"{_AUTH}/GetTokenAuthority", question.encode())
        except GrpcError as error:
            if error.code in (UNIMPLEMENTED, UNAVAILABLE):
                return False
            with in_our_words(f"token for {host}"):
                raise
        return len(GetTokenAuthorityResponse.decode(answer).public_key) == _KEY_SIZE

    # --- files -------------------------------------------------------------------------------------------------------

    @property
    def serves_files(self) -> bool:
        """True if the client offers directories at all."""
        return files.are_served(self._calls)

    def sync(self, directory: LocalDirectory, /) -> AbstractAsyncContextManager[SyncChannel]:
        return files.sync(self._calls, directory)

    def send_directory(self, exporter: int, /) -> AbstractAsyncContextManager[SyncChannel]:
        return files.send_directory(self._calls, exporter)

    async def send_file(self, exporter: int, chunks: AsyncIterator[bytes], metadata: Mapping[str, str], /) -> bool:
        return await files.send_file(self._calls, exporter, chunks, metadata)

    def upload(self, url: str, /) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return files.upload(self._calls, url)

    async def check_policy(self, facts: SourceFacts, platform: Platform | None, /) -> Decision | Inquiry:
        return await policy.check(self._calls, facts, platform)

    def content(self, store: str, /) -> ClientContent:
        return ClientContent(self._calls, store)
