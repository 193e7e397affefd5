"""The plan of a step for the runtime. Pure: an operation and facts about the host in, a record and a spec out."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from husk.builder.graph.operations import Exec, ProcessSpec, StepLimits
from husk.config import CPU_PERIOD, NO_CEILING, ContainerDefaults, StepCeiling
from husk.engine.containers.config import spec as containers
from husk.engine.containers.config.merge import complete_host_config
from husk.engine.containers.config.network_files import hosts, resolv_conf_of
from husk.engine.containers.config.spec import Extras
from husk.engine.host import EngineHost
from husk.engine.model.container import Container
from husk.engine.model.container_config import ContainerConfig, HostConfig, Ulimit
from husk.engine.networks.connector import Connected
from husk.errors import HuskError, InvalidParameter
from husk.runtime.assembly.paths import ContainerPaths
from husk.runtime.spec.document import RuntimeContainer, SpecMount
from husk.runtime.spec.users import ProcessUser

HOSTNAME = "buildkitsandbox"
_NETWORKS = {"sandbox": "bridge", "host": "host", "none": "none"}


class StepFailed(HuskError):
    """A process of a build has ended badly."""

    def __init__(self, args: Sequence[str], exit_code: int) -> None:
        self.command = " ".join(args)
        self.exit_code = exit_code
        self.left: list[str] = []  # the stacks of its outputs, as it has left them, where somebody may want them
        quoted = msgspec.json.encode(self.command).decode()
        super().__init__(f"process {quoted} did not complete successfully: exit code: {exit_code}")


def check(body: Exec, exit_code: int) -> None:
    """StepFailed if a process that ended so has failed."""
    if exit_code not in (body.process.valid_exit_codes or [0]):
        raise StepFailed(body.process.args, exit_code)


def record_of(
    step_id: str, body: Exec, host: EngineHost, defaults: ContainerDefaults, most: StepCeiling = NO_CEILING
) -> Container:
    """A container that is in no store. It has no name: that is how others know not to show it."""
    process = body.process
    if not process.args:
        raise InvalidParameter("a process of a build has no arguments")
    return Container(
        id=step_id,
        name="",
        created="",
        created_ns=0,
        image_id="",
        config=ContainerConfig(
            hostname=process.hostname or HOSTNAME,
            user=process.user,
            env=list(process.env),
            working_dir=process.cwd or "/",
        ),
        host_config=complete_host_config(_host_config(body, most), host, daemon=defaults),
        path=process.args[0],
        args=process.args[1:],
    )


def _host_config(body: Exec, most: StepCeiling) -> HostConfig:
    process, limits = body.process, _below(body.process.limits, most)
    network = _NETWORKS[body.network]
    return HostConfig(
        network_mode=limits.network or network if network == "bridge" else network,
        ipc_mode="private",
        init=False,
        privileged=body.insecure,
        readonly_rootfs=body.mounts[0].read_only,
        extra_hosts=[f"{name}:{address}" for name, address in process.extra_hosts],
        ulimits=[Ulimit(name=one.name, soft=one.soft, hard=one.hard) for one in process.ulimits],
        cgroup_parent=process.cgroup_parent,
        security_opt=list(limits.security) or None,
        shm_size=limits.shm_size,
        memory=limits.memory,
        memory_swap=limits.memory_swap,
        cpu_shares=limits.cpu_shares,
        cpu_period=limits.cpu_period,
        cpu_quota=limits.cpu_quota,
        cpuset_cpus=limits.cpuset_cpus,
        cpuset_mems=limits.cpuset_mems,
    )


def _below(limits: StepLimits, most: StepCeiling) -> StepLimits:
    """Return the limits that a step asks for, none of them above those of the daemon's settings."""
    if most.memory:
        asked, swap = limits.memory, limits.memory_swap
        # A frontend's number may be negative, which a runtime reads as no limit.
        memory = asked if 0 < asked < most.memory else most.memory
        both = 2 * most.memory if swap < 0 else min(swap, 2 * most.memory)
        limits = replace(limits, memory=min(memory, both or memory), memory_swap=both)
    if most.cpu_quota:
        quota = limits.cpu_quota * CPU_PERIOD // (limits.cpu_period or CPU_PERIOD)
        if not 0 < quota <= most.cpu_quota:
            limits = replace(limits, cpu_period=CPU_PERIOD, cpu_quota=most.cpu_quota)
    return limits


def spec_of(
    record: Container,
    paths: ContainerPaths,
    user: ProcessUser,
    host: EngineHost,
    extras: Extras,
    env: Sequence[str],
    mounts: tuple[SpecMount, ...],
) -> RuntimeContainer:
    """As a container's, but with nothing mounted by the runtime except what every one has, and `mounts`."""
    wanted, _ = containers.plan(record, paths, user, host, extras)
    return replace(wanted, env=tuple(env), mounts=mounts)


def environment(process: ProcessSpec, added: Sequence[str], user: ProcessUser) -> list[str]:
    """`added` are variables of the client's and the builder's, which count more than the image's own."""
    values: dict[str, str] = {"PATH": containers.DEFAULT_PATH}
    if not user.listed:
        # The runtime knows the home of users that the passwd file lists.
        values["HOME"] = "HOME=/"
    for entry in [*process.env, *_proxies(process.proxy), *added]:
        values[entry.partition("=")[0]] = entry
    return list(values.values())


def _proxies(proxies: dict[str, str]) -> list[str]:
    """Programs look for one or the other form."""
    return [f"{form}={value}" for name, value in proxies.items() for form in (name.upper(), name.lower())]


def hosts_file(record: Container, network: Connected) -> str:
    base = f"127.0.0.1\tlocalhost {record.config.hostname}\n::1\tlocalhost ip6-localhost ip6-loopback\n"
    return hosts([], record.host_config.extra_hosts or [], network.host_gateways, base)


def resolv_conf_file(record: Container, network: Connected, of_host: str) -> str:
    return resolv_conf_of(record, network.resolver, of_host)
