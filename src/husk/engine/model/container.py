"""The model of a container: its state, its place on networks, its mounts, and its record in the store.

The count of changes to records of containers: each puts another record in the place of the one before.

Whoever keeps something that was made of such records (an answer of the API) compares the count before it uses it
again. One count for all: who finds it changed looks at the records themselves. It is the process's own, as records are
handed from room to room and know no owner.

Work that lives beside a container's process, never longer, and is told when that starts and stops.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Generic, Literal, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from husk.engine.model.container_config import ContainerConfig, EndpointRequest, HostConfig
from husk.network.ports import PublishedPort

KIND = "container"
ZERO_TIME = "0001-01-01T00:00:00Z"

Status = Literal["created", "running", "paused", "restarting", "removing", "exited", "dead"]
C_contra = TypeVar("C_contra", contravariant=True)


class HealthResult(Struct, kw_only=True, rename="pascal", frozen=True):
    """One probe. The exit code is -1 where the probe could not be run or did not end in time."""

    start: str
    end: str
    exit_code: int
    output: str


class Health(Struct, kw_only=True, rename="pascal", frozen=True):
    """The health of a container, by its probes; `log` holds the latest of them."""

    status: Literal["starting", "healthy", "unhealthy"] = "starting"
    failing_streak: int = 0
    log: Sequence[HealthResult] = []


class Endpoint(Struct, kw_only=True, frozen=True):
    """The container's place on one network. Addresses are empty while it does not run."""

    network_name: str
    network_id: str
    request: EndpointRequest = field(default_factory=EndpointRequest)
    endpoint_id: str = ""
    mac_address: str = ""
    ip_address: str = ""
    prefix_len: int = 0
    gateway: str = ""
    # Empty on a network without IPv6.
    ip6_address: str = ""
    prefix6_len: int = 0
    gateway6: str = ""
    # It leads everywhere without a gateway.
    direct: bool = False
    host_interface: str = ""
    # Its name inside the container.
    interface: str = "eth0"
    # It was added to a container that existed, which makes its names known; others are from the first start on.
    added: bool = False


class MountPoint(Struct, kw_only=True, rename="pascal", omit_defaults=True, frozen=True):
    """A place in the container's file system that comes from elsewhere: bind, volume, tmpfs or image.

    `source` is where its content lies on the host, with the subpath of a volume; an image is mounted there while the
    container runs, and a tmpfs has none. `name` is that of the volume or image.
    """

    type: str
    name: str = ""
    source: str = ""
    destination: str
    driver: str = ""
    mode: str = ""
    rw: bool = field(default=True, name="RW")
    propagation: str = ""
    subpath: str = ""
    # bind
    makes_source: bool = False
    recursive: bool = True
    readonly_recursive: bool = True
    # volume
    copies: bool = False  # what the image has there goes into the volume when that is empty
    anonymous: bool = False
    declared: bool = False  # by Config.Volumes, or taken from a container that has it so
    # tmpfs
    options: str = ""
    # image
    image_id: str = ""
    layers: Sequence[str] = []

    @property
    def staged(self) -> bool:
        """True if the mount must be made beside the container's root first, as the runtime takes nothing but paths."""
        return self.type == "image" or bool(self.subpath)


class State(Struct, kw_only=True, frozen=True):
    """The stage of its life that the container is in. Times are RFC 3339 with nanoseconds, `ZERO_TIME` for never.

    `husk.engine.containers.states` makes one of another.
    """

    status: Status = "created"
    pid: int = 0
    exit_code: int = 0
    error: str = ""
    oom_killed: bool = False
    started_at: str = ZERO_TIME
    finished_at: str = ZERO_TIME
    health: Health | None = None

    @property
    def running(self) -> bool:
        return self.status in ("running", "paused", "restarting")


TASK_LABEL = "com.docker.swarm.task.id"


class Container(Struct, kw_only=True, frozen=True):
    """The record of one container: what the store holds. A change of it is another record: see `Draft`."""

    id: str
    name: str
    created: str
    created_ns: int
    image_id: str
    config: ContainerConfig
    host_config: HostConfig
    path: str
    args: Sequence[str]
    layers: Sequence[str] = []
    mounts: Sequence[MountPoint] = []
    state: State = field(default_factory=State)
    endpoints: Mapping[str, Endpoint] = {}
    sandbox_path: str = ""
    published: Sequence[PublishedPort] = []
    restart_count: int = 0
    runtime: str = ""
    monitor_pid: int = 0
    monitor_started: int = 0
    has_been_manually_stopped: bool = False
    paused_for_commit: bool = False

    @property
    def on_networks(self) -> bool:
        """True while the container has its interfaces: not while it waits for its next run."""
        return self.state.running and self.state.status != "restarting"

    @property
    def is_task(self) -> bool:
        """True if the container belongs to a service."""
        return TASK_LABEL in self.config.labels

    def uses(self, images: Collection[str]) -> bool:
        """Return True if the container was made of one of these images, by their ids, or mounts one."""
        return self.image_id in images or any(point.image_id in images for point in self.mounts)

    @property
    def used_layers(self) -> list[str]:
        """The layers of its image and of the images that it mounts."""
        return [*self.layers, *(layer for point in self.mounts for layer in point.layers)]


class Draft:
    """The record of a container as work under way on it has it, step by step; each step makes another record.

    It is written at the end of the work, and is the container's record from then on. While there is no work it is that
    record. Networks know their members by this: names and addresses are found before a start is recorded.
    """

    __slots__ = ("record",)

    def __init__(self, record: Container) -> None:
        self.record = record

    @property
    def id(self) -> str:
        return self.record.id

    def change(self, **fields: object) -> None:
        self.record = replace(self.record, **fields)

    def put(self, endpoint: Endpoint) -> None:
        """Give it another endpoint on one network."""
        self.change(endpoints={**self.record.endpoints, endpoint.network_name: endpoint})

    def take(self, network: str) -> Endpoint:
        """Take its endpoint on a network away, and return that."""
        endpoints = dict(self.record.endpoints)
        endpoint = endpoints.pop(network)
        self.change(endpoints=endpoints)
        return endpoint


class ChangeCounter:
    """The number of changes to something; it never goes back."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def note(self) -> None:
        """To be called after the change: who looked between the two has to look again."""
        self.count += 1


changes = ChangeCounter()


class Companion(Generic[C_contra]):
    """`C_contra` is what it has to know of a container.

    It is told with the container's lock held, so what it is told must take no time.
    """

    async def starting(self, container: C_contra, /) -> None:
        """The process is about to be made; what is raised here keeps it from that."""

    def running(self, container: C_contra, /) -> None:
        """The process runs: it was started or thawed, or a former daemon started it."""

    def paused(self, container: C_contra, /) -> None:
        """The process is frozen."""

    def ended(self, container: C_contra, /) -> None:
        """The process has ended."""
