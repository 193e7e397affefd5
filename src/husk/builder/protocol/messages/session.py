"""The services of a session, which the client serves: `session/{auth,secrets,sshforward,exporter}/*.proto`."""

from typing import Annotated

from husk.rpc.protobuf import Message


class BytesMessage(Message):
    """Bytes of a stream within a stream: sessions, SSH, files that are sent or uploaded."""

    data: Annotated[bytes, 1] = b""


class CredentialsRequest(Message):
    host: Annotated[str, 1] = ""


class CredentialsResponse(Message):
    username: Annotated[str, 1] = ""
    secret: Annotated[str, 2] = ""


class FetchTokenRequest(Message):
    client_id: Annotated[str, 1] = ""
    host: Annotated[str, 2] = ""
    realm: Annotated[str, 3] = ""
    service: Annotated[str, 4] = ""
    scopes: Annotated[list[str], 5] = []


class FetchTokenResponse(Message):
    token: Annotated[str, 1] = ""
    expires_in: Annotated[int, 2] = 0
    issued_at: Annotated[int, 3] = 0


class GetTokenAuthorityRequest(Message):
    host: Annotated[str, 1] = ""
    salt: Annotated[bytes, 2] = b""


class GetTokenAuthorityResponse(Message):
    public_key: Annotated[bytes, 1] = b""


class GetSecretRequest(Message):
    id: Annotated[str, 1] = ""
    annotations: Annotated[dict[str, str], 2] = {}


class GetSecretResponse(Message):
    data: Annotated[bytes, 1] = b""


class CheckAgentRequest(Message):
    id: Annotated[str, 1] = ""


class CheckAgentResponse(Message):
    pass
