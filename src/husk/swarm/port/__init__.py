"""The cluster port: where the nodes of a swarm talk to its managers. gRPC over TLS 1.3.

- `messages` what is said. Pure
- `assignment_messages`, `log_messages` and `mixed_releases` what is said of tasks and logs. Pure
- `peers` who calls, and what they may ask for. Pure
- `protocol` which releases work together. Pure
- `crowding` how many connections and how many wrong tokens are too many. Pure
- `faults` errors of the engine on the wire and back. Pure
- `server` the port itself: connections, and a place for handlers (`ClusterPort.register`)
- `certificates` the handlers that give out roots and certificates; what they ask of a swarm is `CertificateServicer`
- `managers` calls of a node to the managers that it knows
- `join` how a new node gets its first certificate, `keeper` how it keeps one
- `logs` how managers read logs of other nodes, `addresses` which of them nodes are given
- `parts` the port with all its handlers
- `dispatch` what nodes are to run, what became of it, that they live: both ends, in bytes

Everybody may ask for the root certificate, and with a join token for a certificate. Everything else wants a certificate
of this swarm, of a node that the swarm still knows; and what is for managers wants one of a manager, who still is one.
A handler is given the peer as verified, and must let it do no more than its share.
"""

from typing import TYPE_CHECKING

from husk.aio.once import late

if TYPE_CHECKING:
    from husk.swarm.port import certificates as certificates
    from husk.swarm.port import dispatch as dispatch
    from husk.swarm.port import enter as enter
    from husk.swarm.port import join as join
    from husk.swarm.port import logs as logs
    from husk.swarm.port import managers as managers
    from husk.swarm.port import messages as messages
    from husk.swarm.port import parts as parts
    from husk.swarm.port import server as server
else:
    # A door: gRPC and HTTP/2 are for swarms of several hosts. One host listens without them (`transport.listener`).
    __getattr__ = late(
        __name__, "certificates", "dispatch", "enter", "join", "logs", "managers", "messages", "parts", "server"
    )
