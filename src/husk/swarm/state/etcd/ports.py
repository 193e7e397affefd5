"""The check that a member of etcd can listen at its place, made before anything is changed."""

import errno
import socket
from collections.abc import Iterable

from husk.errors import Unavailable
from husk.text.endpoints import Endpoint


def check_free(places: Iterable[Endpoint]) -> None:
    """Unavailable for one that another program has. Any other trouble is for etcd to tell."""
    for place in places:
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(place)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    raise Unavailable(
                        f"several managers need etcd, and another program has {place} on {socket.gethostname()}: stop "
                        "it, or choose other ports with --swarm-etcd-ports"
                    ) from None
