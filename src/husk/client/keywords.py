"""The keywords by which containers and services are described, with their types, for editors and type checkers.

They are the fields of `ContainerSpec` and `ServiceSpec`, which hold the values; a test compares them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from husk.client.service_spec import RestartPolicy, ServiceFile, UpdateConfig
from husk.client.spec import Command, Healthcheck, Mount, Size


class ContainerOptions(TypedDict, total=False):
    """The keywords of `run`, `container` and `containers.create`: the fields of `ContainerSpec` but image and command.

    options: husk.ContainerOptions = {"memory": "64m", "network": "none"}
    result = await engine.run("busybox", "true", **options)
    """

    name: str  #: The name; one is invented if empty
    entrypoint: Command  #: The program that gets the command as arguments; that of the image if None
    #: Variables: `{"NAME": "value"}` or `["NAME=value"]`; None takes one of the image away
    environment: Mapping[str, str | None] | Sequence[str]
    labels: Mapping[str, str]  #: Labels
    user: str  #: The user, as `name`, `name:group` or numbers
    working_dir: str  #: The directory that it starts in
    hostname: str  #: The name of its host
    domainname: str  #: The domain of its host
    tty: bool  #: True for a terminal
    stdin: bool  #: True if it may be written to; its input ends with that of the first client
    platform: str  #: The platform, as `linux/arm64`

    # what it sees
    mounts: Sequence[Mount]  #: Mounts
    volumes: Sequence[str]  #: Mounts as `docker run -v` takes them: `/host:/there:ro`, `name:/there`
    volumes_from: Sequence[str]  #: Containers whose mounts it gets, as `name:ro`
    tmpfs: Mapping[str, str]  #: Directories in memory, with options: `{"/run": "size=1m"}`
    devices: Sequence[str]  #: Devices of the host: `/dev/fuse`, `/dev/a:/dev/b:rw`
    shm_size: Size  #: The size of `/dev/shm`: bytes, or with a unit as `64m`
    read_only: bool  #: True if its root cannot be written to

    # its network
    network: str  #: A network, or `bridge`, `host`, `none`, `container:NAME`
    aliases: Sequence[str]  #: More names on its network
    ip: str  #: Its address; one is chosen if empty
    ip6: str  #: Its address of IPv6; one is chosen if empty
    mac_address: str  #: Its MAC address; one is chosen if empty
    #: Ports in the container (`80`, `53/udp`) and those of the host: a number, (address, number), None for any, or a
    #: list
    ports: Mapping[str | int, Any]
    expose: Sequence[str | int]  #: Ports that it listens on
    publish_all_ports: bool  #: True to publish all of these on any port of the host
    dns: Sequence[str]  #: Servers for names
    dns_search: Sequence[str]  #: Domains that names are looked up in
    dns_opt: Sequence[str]  #: Options for looking up names
    extra_hosts: Sequence[str]  #: More lines for `/etc/hosts`: `name:address`
    links: Sequence[str]  #: Other containers that it sees by other names, as `container:name`

    # its limits
    memory: Size  #: The most memory: bytes, or with a unit as `64m`
    memory_reservation: Size  #: The memory that it keeps when the host has little: bytes, or with a unit as `64m`
    memory_swap: Size  #: The most memory with swap: bytes, or with a unit as `64m`; -1 for no limit
    cpus: float  #: The most processors, as `1.5`
    cpu_shares: int  #: Its part of the processors beside others
    cpuset_cpus: str  #: The processors that it may use, as `0-2`
    cpuset_mems: str  #: The memory nodes that it may use
    pids_limit: int | None  #: The most processes
    ulimits: Mapping[str, int | tuple[int, int]]  #: Limits by name: a number, or (soft, hard)
    blkio_weight: int  #: Its part of the disk beside others
    storage_opt: Mapping[str, str]  #: Options for its files, as `size`
    oom_kill_disable: bool  #: True to wait, and not to kill, when memory is short
    oom_score_adj: int  #: How early the kernel kills it when the host has no memory

    # what it may
    privileged: bool  #: True for all capabilities and devices
    cap_add: Sequence[str]  #: Capabilities that it gets
    cap_drop: Sequence[str]  #: Capabilities that it does not get
    security_opt: Sequence[str]  #: `no-new-privileges`, `seccomp=…` and so on
    group_add: Sequence[str]  #: More groups of its user
    sysctls: Mapping[str, str]  #: Settings of the kernel for it
    ipc_mode: str  #: `private`, `shareable`, `host` or `container:NAME`
    pid_mode: str  #: `host` or `container:NAME`
    uts_mode: str  #: `host`
    userns_mode: str  #: `host`
    cgroupns: str  #: `private` or `host`
    cgroup_parent: str  #: The control group above its own
    runtime: str  #: The name of an OCI runtime

    # its life
    init: bool | None  #: True for an init process that reaps others; the engine decides if None
    auto_remove: bool  #: True to remove it at its end
    restart: str  #: `no`, `always`, `unless-stopped` or `on-failure:3`
    stop_signal: str  #: The signal that asks it to end
    stop_timeout: int | None  #: Seconds until it is killed
    healthcheck: Healthcheck | None  #: The test of its health; that of the image if None
    log_driver: str  #: The log driver; the engine's own if empty
    log_opts: Mapping[str, str]  #: Options of the log driver

    extra_config: Mapping[str, Any]  #: Fields of the API that have no name here, merged into the document
    extra_host_config: Mapping[str, Any]  #: The same, merged into its `HostConfig`


class RunOptions(ContainerOptions, total=False):
    """The keywords of `Client.run` and `husk.run`: those of `ContainerOptions`, and those of a run.

    options: husk.RunOptions = {"memory": "64m", "timeout": 10}
    result = await engine.run("busybox", "true", **options)
    """

    input: bytes | None  #: Bytes that the process reads; it reads nothing without them
    timeout: float | None  #: Seconds, after which the container is killed
    max_output: int | None  #: The number of bytes that are kept of each stream; all if None
    kill_at_max_output: bool  #: True to kill the container when it writes more than `max_output`
    pull: str  #: `missing`, `always` or `never`: when the image is pulled before


class ServiceOptions(TypedDict, total=False):
    """The keywords of `services.create`: the fields of `ServiceSpec` but image and command.

    options: husk.ServiceOptions = {"replicas": 2, "memory": "64m"}
    service = await engine.services.create("busybox", "sleep 600", **options)
    """

    name: str  #: The name; one is invented if empty
    entrypoint: Command  #: The program that gets the command as arguments; that of the image if None
    environment: Mapping[str, str | None] | Sequence[str]  #: Variables: `{"NAME": "value"}` or `["NAME=value"]`
    labels: Mapping[str, str]  #: Labels of the service
    container_labels: Mapping[str, str]  #: Labels of its containers
    user: str  #: The user, as `name`, `name:group` or numbers
    groups: Sequence[str]  #: More groups of the user
    working_dir: str  #: The directory that tasks start in
    hostname: str  #: The name of their host; a template may name what differs between tasks
    tty: bool  #: True for a terminal
    stdin: bool  #: True if tasks may be written to
    init: bool | None  #: True for an init process that reaps others; the engine decides if None
    read_only: bool  #: True if their root cannot be written to
    stop_signal: str  #: The signal that asks a task to end
    stop_grace_period: float | None  #: Seconds until it is killed
    healthcheck: Healthcheck | None  #: The test of their health; that of the image if None

    # what its tasks see
    mounts: Sequence[Mount]  #: Mounts
    secrets: Sequence[ServiceFile]  #: Secrets, as files: `secret.reference()`
    configs: Sequence[ServiceFile]  #: Configs, as files: `config.reference()`
    extra_hosts: Sequence[str]  #: More lines for `/etc/hosts`: `address name`
    dns: Sequence[str]  #: Servers for names
    dns_search: Sequence[str]  #: Domains that names are looked up in
    dns_opt: Sequence[str]  #: Options for looking up names
    sysctls: Mapping[str, str]  #: Settings of the kernel for tasks
    cap_add: Sequence[str]  #: Capabilities that they get
    cap_drop: Sequence[str]  #: Capabilities that they do not get
    ulimits: Mapping[str, int | tuple[int, int]]  #: Limits by name: a number, or (soft, hard)

    # how many, and where
    mode: str  #: `replicated`, `global`, `replicated-job` or `global-job`
    replicas: int | None  #: The number of copies; of a job the number of tasks that are to end well
    max_concurrent: int | None  #: Of a job: the most tasks at a time
    constraints: Sequence[str]  #: Conditions for nodes: `node.labels.disk==ssd`
    max_replicas: int  #: The most tasks on a node; 0 for no limit

    # its network
    networks: Sequence[str]  #: Networks, by name or id
    endpoint_mode: str  #: `vip` or `dnsrr`
    ports: Mapping[str | int, int | None]  #: Ports in a task (`80`, `53/udp`) and the published ones; None for any
    publish_mode: str  #: `ingress` or `host`

    # its limits, and what is kept free for it
    memory: Size  #: The most memory of a task: bytes, or with a unit as `64m`
    cpus: float  #: The most processors of a task
    pids_limit: int  #: The most processes of a task
    memory_reservation: Size  #: The memory that a node must have free: bytes, or with a unit as `64m`
    cpus_reservation: float  #: The processors that a node must have free

    # its life
    restart_policy: RestartPolicy | None  #: The rule for tasks that have ended
    update_config: UpdateConfig | None  #: The way to change tasks
    rollback_config: UpdateConfig | None  #: The way to go back
    log_driver: str  #: The log driver; the node's own if empty
    log_opts: Mapping[str, str]  #: Options of the log driver

    extra: Mapping[str, Any]  #: Fields of the API that have no name here, merged into the document


class ServiceChanges(ServiceOptions, total=False):
    """The keywords of `Service.update`: all fields of `ServiceSpec`.

    changes: husk.ServiceChanges = {"image": "busybox", "replicas": 3}
    await service.update(**changes)
    """

    image: str  #: The image
    command: Command  #: The command and its arguments; that of the image if None
