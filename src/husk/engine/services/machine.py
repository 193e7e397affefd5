"""The host, as the one node of a swarm sees it."""

from msgspec import Struct


class Machine(Struct, frozen=True):
    """What the swarm's node is: the host that the daemon runs on."""

    hostname: str = ""
    architecture: str = ""
    cpus: int = 1
    memory: int = 0
    # That of the engine.
    version: str = ""
