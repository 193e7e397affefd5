"""The way of this engine into another one's swarm, as a node of it. Checked here, done by `husk.swarm.port.join`."""

import asyncio
import contextlib

from husk.aio.once import load
from husk.errors import HuskError, InvalidParameter
from husk.swarm import ca, port
from husk.swarm.ca.identity import Identity
from husk.swarm.ca.tokens import WRONG_TOKEN
from husk.swarm.model import settings
from husk.swarm.model.node import NodeDescription
from husk.swarm.model.settings import JoinSettings
from husk.swarm.port.assignment_messages import encoded
from husk.swarm.spec import addresses
from husk.text.endpoints import MANAGER_PORT, HostPort, read_endpoint

# How long a manager has to hear that a node leaves, in seconds.
FAREWELL = 2.0


def check(wish: JoinSettings) -> tuple[HostPort, ...]:
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


class SwarmEntrance:
    """The managers of a swarm that this host is not in yet, or as something else: what they are asked for."""

    async def join(self, wish: JoinSettings, description: NodeDescription) -> "port.join.JoinResult":
        """Ask a manager to be let in, as a node that is described so."""
        remotes = check(wish)
        await addresses.listening(wish.listen)
        await load("husk.swarm.port.join")
        request = port.messages.JoinRequest(
            token=wish.token,
            availability=wish.availability.lower(),
            hostname=description.hostname,
            address=wish.advertise,
            data_path_address=wish.data_path,
            description=encoded(description),
            port=wish.port,
        )
        return await port.join.join(remotes, request)

    async def withdraw(self, joined: "port.join.JoinResult") -> None:
        """Tell the swarm that a node which has just joined will never work for it, if a manager hears that."""
        managers = port.managers.Managers(joined.managers, joined.identity)
        try:
            with contextlib.suppress(HuskError):
                await port.dispatch.DispatchCalls(managers).leave(FAREWELL)
        finally:
            await managers.close()

    async def renew(self, endpoints: list[HostPort], identity: Identity) -> Identity:
        """Ask one of these managers for a certificate for what this node is now."""
        managers, said = port.managers.Managers(endpoints, identity), port.messages
        try:
            key, request = await asyncio.to_thread(ca.authority.new_request)
            reply = await managers.unary(said.RENEW, said.RenewRequest(request=request), said.CertificateReply)
        finally:
            await managers.close()
        return Identity(reply.roots, reply.certificate, key)

    async def enter(
        self, managers: "port.managers.Managers", identity: Identity, request: bytes
    ) -> "port.enter.ManagerSecrets":
        """Ask any manager for what all of them share."""
        return await port.enter.enter(managers, identity, request)


ENTRANCE = SwarmEntrance()


def is_managers(identity: Identity) -> bool:
    """Tell if an identity's certificate is that of a manager."""
    holder = ca.authority.look(identity.certificate).holder
    return holder is not None and holder.role == "manager"
