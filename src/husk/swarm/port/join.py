"""The first certificate of a new node. The node asks a manager for the root, compares it with its token, and asks once
more, now knowing whom, with the token and a key of its own.
"""

import asyncio
import ssl
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from husk.errors import SystemFault, Unavailable
from husk.rpc.grpc.status import GrpcError
from husk.rpc.protobuf import Message
from husk.swarm.ca import authority
from husk.swarm.ca.authority import Issued
from husk.swarm.ca.holders import MANAGER_NAME, Holder
from husk.swarm.ca.identity import Identity, joining_context
from husk.swarm.ca.tokens import JoinToken, read_token
from husk.swarm.port import protocol
from husk.swarm.port.faults import from_wire
from husk.swarm.port.messages import JOIN, ROOT, CertificateReply, JoinRequest, RootReply, RootRequest
from husk.swarm.port.protocol import ProtocolVersion
from husk.swarm.transport.wire import connect, plainly
from husk.text.endpoints import MANAGER_PORT, HostPort, read_endpoint

A = TypeVar("A", bound=Message)

# In seconds: for all of it, as Docker has it, and for a connection.
PATIENCE, CONNECT = 20.0, 5.0
TOO_LATE = "Timeout was reached before node joined. The attempt to join the swarm has been given up."


class JoinResult(NamedTuple):
    identity: Identity
    holder: Holder
    issued: Issued
    managers: tuple[HostPort, ...]


async def join(remotes: Sequence[HostPort], request: JoinRequest, patience: float = PATIENCE) -> JoinResult:
    """Become a node. `request` has everything but the key, and what this node speaks. InvalidParameter for a token that
    is none or is refused, Unavailable where no manager answers, SystemFault for one that is not to be trusted, Conflict
    for one of a release that is too far away."""
    token = read_token(request.token)
    try:
        async with asyncio.timeout(patience):
            root = await _root(remotes, token)
            request.protocol, request.release = protocol.OWN
            key, request.request = await asyncio.to_thread(authority.new_request)
            reply = await _call(remotes, joining_context(root), JOIN, request, CertificateReply)
    except TimeoutError:
        raise Unavailable(TOO_LATE) from None
    return await asyncio.to_thread(_checked, reply, key, remotes)


async def _root(remotes: Sequence[HostPort], token: JoinToken) -> bytes:
    reply = await _call(remotes, joining_context(None), ROOT, RootRequest(), RootReply)
    if not token.fits(reply.certificate):
        raise SystemFault(f"remote CA does not match fingerprint. Expected: {token.digest.hex()}")
    protocol.check(node=protocol.OWN, manager=ProtocolVersion(reply.protocol, reply.release))
    return reply.certificate


async def _call(remotes: Sequence[HostPort], tls: ssl.SSLContext, method: str, request: Message, answer: type[A]) -> A:
    """One call to the first manager that takes it."""
    trouble = Unavailable("there is no manager to join")
    for remote in remotes:
        try:
            connection = await connect(remote, tls, MANAGER_NAME, CONNECT)
        except (OSError, GrpcError) as error:
            trouble = Unavailable(_unreached(remote, error))
            continue
        try:
            return answer.decode(await connection.unary(method, request.encode()))
        except GrpcError as error:
            raise from_wire(error) from None
        finally:
            await connection.close()
    raise trouble


def _unreached(remote: HostPort, error: OSError | GrpcError) -> str:
    """Docker's words around ours."""
    reason = plainly(error)
    reason = reason[:1].lower() + reason[1:]
    told = f'connection error: desc = "transport: Error while dialing: dial tcp {remote}: connect: {reason}"'
    return f"rpc error: code = Unavailable desc = {told}"


def _checked(reply: CertificateReply, key: bytes, remotes: Sequence[HostPort]) -> JoinResult:
    """Read the certificate that a manager gave us; SystemFault if it cannot be read, or is not for our key."""
    try:
        issued = authority.look(reply.certificate)
        right = issued.holder is not None and authority.fits(reply.certificate, key)
        managers = tuple(read_endpoint(text, MANAGER_PORT) for text in reply.managers)
    except Exception as error:
        raise SystemFault(f"the manager gave us a certificate that cannot be read: {error}") from None
    if not right or issued.holder is None:
        raise SystemFault("the manager gave us a certificate that is not ours")
    return JoinResult(Identity(reply.roots, reply.certificate, key), issued.holder, issued, managers or tuple(remotes))
