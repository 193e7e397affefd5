"""The record of a swarm, and the one of this host's place in it. Pure."""

from itertools import zip_longest
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct

from husk.config import ClusterStoreConfig
from husk.swarm.model.settings import DATA_PATH_PORT, SwarmSpec
from husk.text.gojson import Reader, parse_document

KIND = "swarm"
KEY = "default"
"""There is one swarm in a store, so its record has one key: of two who make a swarm there, one comes too late."""


MEMBERSHIP = "membership"
SELF = "self"
"""The kind and the key of the record of this host's place, which is in the host's own store."""


class SwarmRoot(Struct, kw_only=True, frozen=True):
    """A root of the swarm's CA: its certificate in PEM, its key, sealed, and what clients are shown of it, in DER."""

    certificate: str
    key: bytes
    subject: bytes
    public_key: bytes
    # By which certificates name the root that signed them.
    key_id: bytes


class Trust(Struct, kw_only=True, frozen=True):
    """The roots that the swarm's nodes believe: `root`; during a change `next` signs and `bridge` answers for it."""

    root: SwarmRoot
    next: SwarmRoot | None = None
    bridge: str = ""

    @property
    def signing(self) -> SwarmRoot:
        return self.next or self.root

    @property
    def roots(self) -> str:
        """The certificates of the roots that a node is to believe now."""
        return self.root.certificate + (self.next.certificate if self.next else "")


class Swarm(Struct, kw_only=True, frozen=True):
    id: str
    version: int
    created_at: str
    updated_at: str
    spec: SwarmSpec
    worker_token: str
    manager_token: str
    default_address_pool: list[str] = []
    subnet_size: int = 24
    data_path_port: int = DATA_PATH_PORT
    # An ingress network that somebody removes is not made again.
    ingress_made: bool = False
    # Swarms of the first releases get one at the next start.
    trust: Trust | None = None
    # With autolock: the key that opens it after a start, sealed, so that other managers lock theirs with the same.
    unlock_key: bytes = b""
    # The CA of the swarm's own etcd, where managers run one: its members and clients have certificates of it.
    store_root: SwarmRoot | None = None

    @property
    def autolock(self) -> bool:
        return self.spec.encryption_config.auto_lock_managers


class Membership(Struct, kw_only=True, frozen=True):
    """The place of this host in a swarm: its node there. It is the host's own record, in its SQLite file, wherever
    those of the swarm are."""

    node_id: str
    # Of a worker: the managers that it knew last, HOST:PORT.
    role: Literal["manager", "worker"] = "manager"
    managers: list[str] = []
    # Which nodes these are; shorter where that is not known yet.
    manager_ids: list[str] = []
    advertise_address: str = ""
    # HOST:PORT of the cluster port.
    listen_address: str = ""
    # Where the swarm's records are, and the files of CA, certificate and key for it; empty for SQLite.
    store: str = ""
    store_files: list[str] = []
    # Where this host runs a member of the swarm's own etcd: those that were there before it, by name, HOST:PORT.
    others: dict[str, str] | None = None
    # Where that member listens, for clients and for the other members; None for the usual ports.
    store_ports: tuple[int, int] | None = None
    # The swarm whose records a backup brings here in this moment: what a crash leaves of them goes at the next start.
    restoring: str = ""

    @property
    def known_managers(self) -> tuple[tuple[str, str], ...]:
        """(node, HOST:PORT); the first is empty where it is not known yet."""
        return tuple((id, address) for address, id in zip_longest(self.managers, self.manager_ids, fillvalue=""))

    @property
    def cluster_store(self) -> ClusterStoreConfig | None:
        """The store to which the swarm's records were moved; None where they are in the host's own store."""
        if not self.store:
            return None
        ca, cert, key = (Path(name) for name in self.store_files or ("", "", ""))
        return ClusterStoreConfig(self.store, (ca, cert, key) if self.store_files else None)


class Standing(NamedTuple):
    """The standing of a worker in its swarm: the address it is known by, whom it asks, and why nobody answers."""

    address: str
    # (node, HOST:PORT); the first is empty where it is not known yet.
    managers: tuple[tuple[str, str], ...]
    trouble: str = ""


_swarm = Reader(Swarm)


def read_swarm(body: bytes) -> Swarm:
    """Records of the first releases hold parts of the settings as their client wrote them, `null` and all."""
    return _swarm.read(parse_document(body))
