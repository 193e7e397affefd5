"""The way of this engine into another one's swarm, as a node of it. Checked here, done by `husk.swarm.port.join`."""

import asyncio
import contextlib
from typing import TYPE_CHECKING

from husk.aio.once import load
from husk.errors import HuskError, InvalidParameter
from husk.swarm.ca.tokens import WRONG_TOKEN
from husk.swarm.model import settings
from husk.swarm.model.node import NodeDescription
from husk.swarm.model.settings import JoinSettings
from husk.swarm.port.assignment_messages import encoded
from husk.swarm.spec import addresses
from husk.text.endpoints import MANAGER_PORT, Endpoint, read_endpoint

if TYPE_CHECKING:
    from husk.swarm.ca.identity import Identity
    from husk.swarm.port.join import Joined

# How long a manager has to hear that a node leaves, in seconds.
FAREWELL = 2.0


def check(wish: JoinSettings) -> tuple[Endpoint, ...]:
    """The managers to ask. InvalidParameter in Docker's words for what cannot be. Pure."""
    if not wish.listen:
        raise InvalidParameter('invalid ListenAddr "": invalid empty address')
    if not wish.remotes:
        raise InvalidParameter("at least 1 RemoteAddr is required to join")
    remotes = []
    for remote in wish.remotes:
        if not remote:
            raise InvalidParameter('invalid remoteAddr "": invalid empty address')
        try:
            remotes.append(read_endpoint(remote.removeprefix("tcp://"), MANAGER_PORT))
        except InvalidParameter as error:
            raise InvalidParameter(f'invalid remoteAddr "{remote}": {error.message}') from None
    settings.availability(wish.availability)
    if not wish.token:
        raise InvalidParameter(WRONG_TOKEN)
    return tuple(remotes)


async def join(wish: JoinSettings, description: NodeDescription) -> "Joined":
    """Ask a manager to be let in, as a node that is described so."""
    remotes = check(wish)
    await addresses.listening(wish.listen)
    await load("husk.swarm.port.join")
    from husk.swarm.port.join import join as ask
    from husk.swarm.port.messages import JoinRequest

    request = JoinRequest(
        token=wish.token,
        availability=wish.availability.lower(),
        hostname=description.hostname,
        address=wish.advertise,
        data_path_address=wish.data_path,
        description=encoded(description),
        port=wish.port,
    )
    return await ask(remotes, request)


async def withdraw(joined: "Joined") -> None:
    """Tell the swarm that a node which has just joined will never work for it, if a manager hears that."""
    from husk.swarm.port.dispatch import DispatchCalls
    from husk.swarm.port.managers import Managers

    managers = Managers(joined.managers, joined.identity)
    try:
        with contextlib.suppress(HuskError):
            await DispatchCalls(managers).leave(FAREWELL)
    finally:
        await managers.close()


async def renewed(endpoints: list[Endpoint], identity: "Identity") -> "Identity":
    """A certificate for what this node is now, from one of these managers."""
    from husk.swarm.ca import authority
    from husk.swarm.ca.identity import Identity
    from husk.swarm.port.managers import Managers
    from husk.swarm.port.messages import RENEW, CertificateReply, RenewRequest

    managers = Managers(endpoints, identity)
    try:
        key, request = await asyncio.to_thread(authority.new_request)
        reply = await managers.unary(RENEW, RenewRequest(request=request), CertificateReply)
    finally:
        await managers.close()
    return Identity(reply.roots, reply.certificate, key)


def is_managers(identity: "Identity") -> bool:
    """Tell if an identity's certificate is that of a manager."""
    from husk.swarm.ca.authority import look

    holder = look(identity.certificate).holder
    return holder is not None and holder.role == "manager"
