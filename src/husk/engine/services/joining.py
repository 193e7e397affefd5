"""How does this engine become a node of another one's swarm? Checked here, done by `husk.cluster.port.join`."""

import ipaddress
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from husk.cluster.endpoints import Endpoint, read_endpoint
from husk.engine.services import settings
from husk.engine.services.assignment_messages import encoded
from husk.engine.services.node import MANAGER_PORT, NodeDescription
from husk.errors import InvalidParameter

if TYPE_CHECKING:
    from husk.cluster.port.join import Joined

WRONG_TOKEN = "rpc error: code = InvalidArgument desc = A valid join token is necessary to join this cluster"
_LISTEN = "listen address must be an IP address or network interface (with optional port number)"


class Wish(NamedTuple):
    """What a client asks for, in its words."""

    remotes: Sequence[str]
    token: str
    listen: str
    advertise: str = ""
    data_path: str = ""
    availability: str = ""


class Plan(NamedTuple):
    remotes: tuple[Endpoint, ...]
    listen: Endpoint


def check(wish: Wish) -> Plan:
    """InvalidParameter in Docker's words for what cannot be. Pure."""
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
    settings.check_availability(wish.availability)
    if not wish.token:
        raise InvalidParameter(WRONG_TOKEN)
    return Plan(tuple(remotes), listen_endpoint(wish.listen))


def listen_endpoint(text: str) -> Endpoint:
    """Where the cluster port is to be: `IP`, `IP:PORT`; an IPv6 address in brackets."""
    try:
        found = read_endpoint(text.removeprefix("tcp://"), MANAGER_PORT)
        return found._replace(host=str(ipaddress.ip_address(found.host)))
    except (InvalidParameter, ValueError):
        raise InvalidParameter(_LISTEN) from None


async def join(wish: Wish, description: NodeDescription) -> "Joined":
    """Ask a manager to be let in, as a node that is described so."""
    plan = check(wish)
    from husk.cluster.port.join import join as ask
    from husk.cluster.port.messages import JoinRequest

    request = JoinRequest(
        token=wish.token,
        availability=wish.availability.lower(),
        hostname=description.hostname,
        address=wish.advertise,
        data_path_address=wish.data_path,
        description=encoded(description),
    )
    return await ask(plan.remotes, request)
