"""The host, as its swarm sees it: as a node."""

from msgspec import Struct


class Machine(Struct, frozen=True):
    """The facts of the host that the daemon runs on, which is a node of the swarm."""

    hostname: str = ""
    architecture: str = ""
    cpus: int = 1
    memory: int = 0
    # That of the engine.
    version: str = ""
