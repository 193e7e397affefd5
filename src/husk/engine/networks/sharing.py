"""Networks that several hosts share: who has which address there is told by records of the swarm, not by this host."""

from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from msgspec import Struct

from husk.engine.model.container import TASK_LABEL, Container, Endpoint
from husk.engine.model.network import Network
from husk.engine.networks.endpoints import dns_names
from husk.network.endpoint import EndpointOptions

Kind = Literal["endpoint", "host", "service"]


class Place(Struct, frozen=True, kw_only=True):
    """The holder of an address: an endpoint, a host itself, or a service. `node` took it and gives it back."""

    network: str
    address: str
    node: str
    kind: Kind
    mac: str = ""
    # What an endpoint is called on the network, and whose it is; `task` is empty for a plain container's.
    names: tuple[str, ...] = ()
    container: str = ""
    task: str = ""

    @property
    def key(self) -> str:
        return key_of(self.network, self.address)


class Occupant(Struct, frozen=True):
    """The holder that an address is wanted for."""

    kind: Kind
    names: tuple[str, ...] = ()
    container: str = ""
    task: str = ""


class Sharing(Protocol):
    """The swarm's records, as they serve the networks that its hosts share."""

    def claimed(
        self, network: Network, options: EndpointOptions, who: Occupant
    ) -> AbstractAsyncContextManager[EndpointOptions]:
        """The options with addresses that nobody else has. What has no interface at the end of the block goes back."""
        ...

    async def removing(self, network: Network) -> None:
        """The network is to end for all hosts; raises where others have endpoints on it."""
        ...


def key_of(network: str, address: str) -> str:
    return f"{network}/{address}"


def occupant(record: Container, endpoint: Endpoint) -> Occupant:
    """A container, as other hosts know it."""
    return Occupant("endpoint", tuple(dns_names(record, endpoint)), record.id, record.config.labels.get(TASK_LABEL, ""))
