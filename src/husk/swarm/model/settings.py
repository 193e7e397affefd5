"""The settings of a swarm and of its node, as clients declare them and as they are kept. Pure."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Struct, field

from husk.errors import InvalidParameter, NotImplementedYet
from husk.swarm.model.services import SECOND, DriverSpec, shown
from husk.text.endpoints import HostPort

Settings = TypeVar("Settings", bound=Struct)

_PREFIX = "rpc error: code = InvalidArgument desc = "
HISTORY = 5
SHORTEST_EXPIRY = 3600 * SECOND
DATA_PATH_PORT = 4789
DATA_PATH_PORTS = range(1024, 49152)


class JoinSettings(NamedTuple):
    """A client's request to join, in its words."""

    remotes: Sequence[str]
    token: str
    listen: str
    advertise: str = ""
    data_path: str = ""
    availability: str = ""
    # Of the cluster port, where another than the usual one is told to others.
    port: int = 0
    # `listen` as an address, of a manager's cluster port; empty for the usual one.
    own_listen: str = ""


class RestoreAddresses(NamedTuple):
    """The addresses of the restored manager; an empty one stays as it was."""

    advertise: HostPort | None = None
    listen: HostPort | None = None
    data_path: str = ""


class Orchestration(Struct, kw_only=True, rename="pascal"):
    task_history_retention_limit: int | None = None


class Raft(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    """The settings of the managers' agreement: kept and shown, but without any effect."""

    snapshot_interval: int = 0
    keep_old_snapshots: int = shown(0)
    log_entries_for_slow_followers: int = 0
    election_tick: int = shown(0)
    heartbeat_tick: int = shown(0)


class DispatcherConfig(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    heartbeat_period: int = 0


class ExternalCA(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    protocol: str = shown("")
    url: str = shown("", "URL")
    options: dict[str, str] = {}
    ca_cert: str = shown("", "CACert")


class CAConfig(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    node_cert_expiry: int = 0
    external_cas: list[ExternalCA] = field(default_factory=list, name="ExternalCAs")
    signing_ca_cert: str = field(default="", name="SigningCACert")
    signing_ca_key: str = field(default="", name="SigningCAKey")
    force_rotate: int = 0


class EncryptionConfig(Struct, kw_only=True, rename="pascal"):
    auto_lock_managers: bool = False


class TaskDefaults(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    log_driver: DriverSpec | None = None


class SwarmSpec(Struct, kw_only=True, rename="pascal"):
    name: str = "default"
    labels: dict[str, str] = {}
    orchestration: Orchestration = field(default_factory=Orchestration)
    raft: Raft = field(default_factory=Raft)
    dispatcher: DispatcherConfig = field(default_factory=DispatcherConfig)
    ca_config: CAConfig = field(default_factory=CAConfig, name="CAConfig")
    encryption_config: EncryptionConfig = field(default_factory=EncryptionConfig)
    task_defaults: TaskDefaults = field(default_factory=TaskDefaults)

    @property
    def history(self) -> int:
        """The number of ended tasks that are kept of each slot."""
        limit = self.orchestration.task_history_retention_limit
        return HISTORY if limit is None else limit


class NodeSpec(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    name: str = ""
    labels: dict[str, str] = field(default_factory=lambda: {})
    role: str = shown("manager")
    availability: str = shown("active")


_INITIAL_RAFT = Raft(snapshot_interval=10000, log_entries_for_slow_followers=500, election_tick=10, heartbeat_tick=1)
_INITIAL_DISPATCHER = DispatcherConfig(heartbeat_period=5 * SECOND)
_INITIAL_CA = CAConfig(node_cert_expiry=90 * 24 * 3600 * SECOND)


def initial(spec: SwarmSpec) -> SwarmSpec:
    """Return the settings of a new swarm: the client's words, and for the rest what is usual."""
    return msgspec.structs.replace(
        spec,
        name="default",
        orchestration=Orchestration(task_history_retention_limit=spec.history),
        raft=_filled(spec.raft, _INITIAL_RAFT),
        dispatcher=_filled(spec.dispatcher, _INITIAL_DISPATCHER),
        ca_config=_without_key(_filled(spec.ca_config, _INITIAL_CA)),
    )


def changed(spec: SwarmSpec) -> SwarmSpec:
    """Return the settings of a swarm after an update: the client's words alone, as dockerd has it."""
    limit = spec.orchestration.task_history_retention_limit or 0
    return msgspec.structs.replace(
        spec,
        name="default",
        orchestration=Orchestration(task_history_retention_limit=limit),
        ca_config=_without_key(spec.ca_config),
    )


def _without_key(config: CAConfig) -> CAConfig:
    """Drop what a client brings to sign with: it is not shown again, nor has the next update to send it again."""
    return msgspec.structs.replace(config, signing_ca_cert="", signing_ca_key="")


def _filled(given: Settings, usual: Settings) -> Settings:
    names = given.__struct_fields__
    return type(given)(**{name: getattr(given, name) or getattr(usual, name) for name in names})


def check(spec: SwarmSpec) -> None:
    if spec.name not in ("", "default"):
        raise InvalidParameter('swarm spec must be named "default"')
    if spec.dispatcher.heartbeat_period < 0:
        raise InvalidParameter(_PREFIX + "heartbeat time period cannot be a negative duration")
    authority = spec.ca_config
    if authority.node_cert_expiry and authority.node_cert_expiry < SHORTEST_EXPIRY:
        raise InvalidParameter(_PREFIX + "minimum certificate expiry time is: 1h0m0s")
    for external in authority.external_cas:
        if external.protocol.lower() != "cfssl":
            raise InvalidParameter(f'invalid protocol: "{external.protocol}"')
    if authority.external_cas:
        raise NotImplementedYet("external CAs of a swarm are not implemented by Husk yet: it signs by itself")
    if authority.signing_ca_key and not authority.signing_ca_cert:
        raise InvalidParameter(_PREFIX + "if a signing CA key is provided, the signing CA cert must also be provided")
    if authority.signing_ca_cert and not authority.signing_ca_key:
        raise InvalidParameter(
            _PREFIX + "there must be at least one valid, reachable external CA corresponding to the desired CA "
            "certificate"
        )


def availability(text: str) -> str:
    """The word that a client means, in whatever letters; empty if it says none."""
    if (word := text.lower()) not in ("", "active", "pause", "drain"):
        raise InvalidParameter(f'invalid Availability: "{text}"')
    return word


def role(text: str) -> str:
    """As `availability`."""
    if (word := text.lower()) not in ("", "manager", "worker"):
        raise InvalidParameter(f'invalid Role: "{text}"')
    return word


def data_path_port(wanted: int) -> int:
    """Return the port for traffic between hosts: the wanted one or the usual; InvalidParameter outside the range."""
    if wanted and wanted not in DATA_PATH_PORTS:
        raise InvalidParameter(f"Datapath port number is not in valid range (1024-49151) : {wanted}")
    return wanted or DATA_PATH_PORT
