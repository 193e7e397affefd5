"""The cluster port with all its handlers."""

from typing import NamedTuple, Protocol

from husk.swarm.port.addresses import AddressHandlers, AddressServicer
from husk.swarm.port.certificates import CertificateHandlers, CertificateServicer
from husk.swarm.port.dispatch import DispatchHandlers, DispatchServicer
from husk.swarm.port.enter import EnterHandlers, EnterServicer
from husk.swarm.port.logs import LogHandlers, LogServicer
from husk.swarm.port.peers import Members
from husk.swarm.port.server import ClusterPort


class CAServicer(Members, CertificateServicer, Protocol):
    """The swarm's CA as a manager serves it, and the nodes that it has certified."""

    def is_home(self, address: str) -> bool:
        """Tell if the address is that of a node."""
        ...


class Servicers(NamedTuple):
    """The parts of a manager that answer what nodes ask for."""

    ca: CAServicer
    dispatch: DispatchServicer
    logs: LogServicer
    addresses: AddressServicer
    enter: EnterServicer


def build_port(servicers: Servicers) -> ClusterPort:
    """Make a port that is not open yet."""
    port = ClusterPort(servicers.ca, home=servicers.ca.is_home)
    CertificateHandlers(servicers.ca).register(port)
    DispatchHandlers(servicers.dispatch).register(port)
    LogHandlers(servicers.logs).register(port)
    AddressHandlers(servicers.addresses).register(port)
    EnterHandlers(servicers.enter).register(port)
    return port
