"""Questions to a client, and the meaning of its answers."""

import pytest

from husk.builder.protocol.messages.session import (
    CheckAgentResponse,
    CredentialsRequest,
    CredentialsResponse,
    FetchTokenRequest,
    FetchTokenResponse,
    GetSecretRequest,
    GetSecretResponse,
    GetTokenAuthorityResponse,
)
from husk.builder.solver.sessions import LARGEST_SECRET, LocalDirectory, TokenRequest
from husk.errors import Forbidden, InvalidParameter, NotFound, Unavailable
from husk.registry.auth import NOBODY
from husk.rpc.grpc.status import NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE, UNKNOWN, GrpcError
from tests.unit.builder.protocol.session.services import Saying, session_with

SECRET = "/moby.buildkit.secrets.v1.Secrets/GetSecret"
CHECK = "/moby.sshforward.v1.SSH/CheckAgent"
AUTH = "/moby.filesync.v1.Auth/"


async def test_a_secret():
    service = Saying(GetSecretResponse(data=b"hunter2"))
    async with session_with({SECRET: service}) as session:
        assert await session.secret("token") == b"hunter2"
    assert GetSecretRequest.decode(service.asked[0]).id == "token"


@pytest.mark.parametrize("methods", [{}, {SECRET: Saying(GrpcError(NOT_FOUND, "no"))}], ids=["no service", "not found"])
async def test_a_secret_that_the_client_does_not_have(methods):
    async with session_with(methods) as session:
        with pytest.raises(NotFound, match="secret token: not found"):
            await session.secret("token")


async def test_a_secret_that_is_too_large():
    async with session_with({SECRET: Saying(GetSecretResponse(data=bytes(LARGEST_SECRET + 1)))}) as session:
        with pytest.raises(InvalidParameter, match="invalid secret size"):
            await session.secret("token")


async def test_a_secret_that_may_not_be_had():
    async with session_with({SECRET: Saying(GrpcError(PERMISSION_DENIED, "vault is locked"))}) as session:
        with pytest.raises(Forbidden, match="secret token: vault is locked"):
            await session.secret("token")


async def test_an_agent_that_is_there_and_one_that_is_not():
    async with session_with({CHECK: Saying(CheckAgentResponse())}) as session:
        await session.check_agent("")
    async with session_with({CHECK: Saying(GrpcError(UNKNOWN, "unset ssh forward key default"))}) as session:
        with pytest.raises(InvalidParameter, match="unset ssh forward key"):
            await session.check_agent("")
    async with session_with({}) as session:
        with pytest.raises(NotFound, match="no SSH key 'default' forwarded"):
            await session.check_agent("")


# --- registries ------------------------------------------------------------------------------------------------------


async def test_credentials():
    service = Saying(CredentialsResponse(username="ann", secret="s3cret"))
    async with session_with({f"{AUTH}Credentials": service}) as session:
        found = await session.credentials("registry.example")
    assert (found.username, found.password, found.identity_token) == ("ann", "s3cret", "")
    assert CredentialsRequest.decode(service.asked[0]).host == "registry.example"


async def test_a_secret_without_a_name_is_an_identity_token():
    async with session_with({f"{AUTH}Credentials": Saying(CredentialsResponse(secret="identity"))}) as session:
        found = await session.credentials("registry.example")
    assert (found.username, found.password, found.identity_token) == ("", "", "identity")


@pytest.mark.parametrize("methods", [{}, {f"{AUTH}Credentials": Saying(CredentialsResponse())}], ids=["none", "empty"])
async def test_a_client_without_credentials_is_nobody(methods):
    async with session_with(methods) as session:
        assert not await session.credentials("registry.example")
    assert not NOBODY


REQUEST = TokenRequest(
    host="registry.example", realm="https://auth.example", service="reg", scopes=["a:pull", "b:pull"]
)


async def test_a_token_that_the_client_fetches():
    fetch = Saying(FetchTokenResponse(token="abc", expires_in=300, issued_at=7))
    methods = {
        f"{AUTH}GetTokenAuthority": Saying(GetTokenAuthorityResponse(public_key=bytes(32))),
        f"{AUTH}FetchToken": fetch,
    }
    async with session_with(methods) as session:
        token = await session.token(REQUEST)
    assert token
    assert (token.token, token.expires_in, token.issued_at) == ("abc", 300, 7)
    asked = FetchTokenRequest.decode(fetch.asked[0])
    assert (asked.host, asked.realm, asked.scopes) == ("registry.example", "https://auth.example", ["a:pull", "b:pull"])


@pytest.mark.parametrize(
    "methods",
    [
        {},
        {f"{AUTH}GetTokenAuthority": Saying(GrpcError(UNAVAILABLE, "client side tokens disabled"))},
        {f"{AUTH}GetTokenAuthority": Saying(GetTokenAuthorityResponse(public_key=b"short"))},
    ],
    ids=["no service", "disabled", "no key"],
)
async def test_a_client_that_leaves_tokens_to_us(methods):
    async with session_with(methods) as session:
        assert await session.token(REQUEST) is None


async def test_a_client_that_has_gone():
    async with session_with({SECRET: Saying(GetSecretResponse())}) as session:
        pass
    with pytest.raises(Unavailable):
        await session.secret("token")


async def test_a_client_that_offers_no_directories():
    async with session_with({}) as session:
        assert not session.serves_files
        with pytest.raises(NotFound, match="no local sources enabled"):
            async with session.sync(LocalDirectory(name="context")):
                pass
