"""Limits on clients of the edge before they have shown what they want: one small table of numbers."""

import msgspec
from msgspec.structs import replace

# Of the descriptors that the process may open, one in so many is a client's at most: workers, logs and containers
# need theirs.
_PART = 2


class HttpLimits(msgspec.Struct, frozen=True):
    """Sizes in bytes, times in seconds."""

    # The head of a request: all of it, and how many lines it has. Credentials for many registries come in one line.
    head_size: int = 256 << 10
    head_lines: int = 256
    # How long a path may be, and how many parameters a query may have: as with Go's. Names are shorter, and lists of
    # them are fewer.
    path_size: int = 16 << 10
    parameters: int = 10_000
    # A body that is one document, which is read as a whole, and meanwhile nothing else is done. The largest that
    # somebody needs is a config of a service, of 1,000 KiB.
    document_size: int = 4 << 20
    # And how many values it may have, by its commas: what each of them takes is more than what a byte does. All ports
    # of TCP are 330,000, as the docker command publishes them.
    document_values: int = 1 << 19
    # From the first byte of a head, or the beginning of a connection, to the head's end.
    head_time: float = 60.0
    # Between an answer and the next request.
    idle_time: float = 3600.0
    # Seconds that a client of TLS may take for the handshake. Those that have not shown who they are cost a descriptor
    # each: no more of them than this at once, in all and from one address.
    handshake_time: float = 10.0
    strangers: int = 128
    peer_strangers: int = 64
    # How long a client may read and send on after the last answer on its connection.
    linger_time: float = 5.0
    # Connections at once: in all, those over TCP, and those of one address.
    connections: int = 8192
    remote_connections: int = 7168
    peer_connections: int = 1024
    # Whether the oldest idle one of an address that has all of them, or most of all, goes for the next that comes.
    # Else that is turned away.
    makes_room: bool = False

    def within(self, descriptors: int) -> "HttpLimits":
        """These limits for a process that may open so many descriptors; local clients keep a part of their own."""
        connections = min(self.connections, max(descriptors // _PART, 1))
        remote = min(self.remote_connections, connections - connections // 8)
        return replace(self, connections=connections, remote_connections=remote)
