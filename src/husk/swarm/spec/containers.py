"""Translates a task's template into a container's configuration. Pure.

A service's privileges as the security options of its containers.
"""

import base64
import binascii
from collections.abc import Iterable

import msgspec

from husk.engine.containers.config import security
from husk.engine.model.container import TASK_LABEL
from husk.engine.model.container_config import ContainerConfig, EndpointRequest, HostConfig, LogConfig, PortBinding
from husk.engine.model.network import Network
from husk.errors import InvalidParameter, NotImplementedYet
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import (
    ContainerSpec,
    NetworkAttachment,
    Privileges,
    SeccompMode,
    SELinuxContext,
    Service,
    Task,
    TaskResources,
    any_ingress,
    copied,
)
from husk.swarm.spec.expand import expanded, words_of

SERVICE_LABEL = "com.docker.swarm.service.id"
SECOND = 10**9
_PREFIX = "rpc error: code = InvalidArgument desc = "


def container_config(
    task: Task, service: Service, node: NodeFacts
) -> tuple[str, ContainerConfig, HostConfig, dict[str, EndpointRequest]]:
    """(name, configuration, host configuration, networks)"""
    # What is made of it is the container's own, and changes with that.
    task, service = msgspec.structs.replace(task, spec=copied(task.spec)), copied(service)
    spec = expanded(task.spec.container_spec or ContainerSpec(), words_of(task, service, node))
    config = ContainerConfig(
        image=spec.image,
        entrypoint=spec.command or None,
        cmd=spec.args or None,
        env=spec.env,
        hostname=spec.hostname,
        user=spec.user,
        working_dir=spec.dir,
        tty=spec.tty,
        open_stdin=spec.open_stdin,
        stop_signal=spec.stop_signal or None,
        stop_timeout=None if spec.stop_grace_period is None else spec.stop_grace_period // SECOND,
        healthcheck=spec.health_check,
        labels={
            **spec.labels,
            "com.docker.swarm.node.id": task.node_id,
            SERVICE_LABEL: service.id,
            "com.docker.swarm.service.name": service.spec.name,
            "com.docker.swarm.task": "",
            TASK_LABEL: task.id,
            "com.docker.swarm.task.name": task.name,
        },
        exposed_ports={f"{port.target_port}/{port.protocol}": {} for port in service.ports} or None,
    )
    return task.name, config, _host_config(task, service, spec), _endpoints(service)


def _host_config(task: Task, service: Service, spec: ContainerSpec) -> HostConfig:
    limits = task.spec.resources.limits if task.spec.resources else None
    reservations = task.spec.resources.reservations if task.spec.resources else None
    networks = [attachment.target for attachment in (*attachments(service), *_ingress(service))]
    dns, resources = spec.dns_config, task.spec.resources
    return HostConfig(
        network_mode=networks[0] if networks else "default",
        mounts=spec.mounts or None,
        readonly_rootfs=spec.read_only,
        init=spec.init,
        extra_hosts=[_host_entry(entry) for entry in spec.hosts] or None,
        group_add=spec.groups or None,
        cap_add=spec.capability_add or None,
        cap_drop=spec.capability_drop or None,
        sysctls=spec.sysctls or None,
        ulimits=spec.ulimits,
        oom_score_adj=spec.oom_score_adj,
        isolation=spec.isolation,
        log_config=LogConfig(type=task.spec.log_driver.name, config=task.spec.log_driver.options or {})
        if task.spec.log_driver
        else LogConfig(),
        port_bindings={
            f"{port.target_port}/{port.protocol}": [PortBinding(host_port=str(port.published_port or ""))]
            for port in service.ports
            if port.publish_mode == "host"
        },
        dns=(dns.nameservers or None) if dns else None,
        dns_search=(dns.search or None) if dns else None,
        dns_options=(dns.options or None) if dns else None,
        memory=limits.memory_bytes if limits else 0,
        nano_cpus=limits.nano_cpus if limits else 0,
        pids_limit=(limits.pids or None) if limits else None,
        memory_reservation=reservations.memory_bytes if reservations else 0,
        memory_swappiness=resources.memory_swappiness if resources else None,
        memory_swap=_swap(limits.memory_bytes if limits else 0, resources) if resources else 0,
        security_opt=(privilege_options(spec.privileges) or None) if spec.privileges is not None else None,
    )


def _swap(memory: int, resources: TaskResources) -> int:
    """A service says how much swap comes on top of the memory, a container what both are together."""
    if resources.swap_bytes is None:
        return 0
    return -1 if resources.swap_bytes < 0 else memory + resources.swap_bytes


def attachments(service: Service) -> list[NetworkAttachment]:
    """The networks of a service's tasks."""
    return service.spec.task_template.networks or service.spec.networks


def is_on(service: Service, network: Network) -> bool:
    """Tell if a service is declared to be on a network."""
    if network.ingress and any_ingress(service.ports):
        return True
    return any(attachment.target == network.id for attachment in attachments(service))


def _ingress(service: Service) -> list[NetworkAttachment]:
    """The ingress network: where a service has an address without having asked to be there."""
    own = {attachment.target for attachment in attachments(service)}
    return [NetworkAttachment(target=v.network_id) for v in service.virtual_ips if v.network_id not in own]


def _endpoints(service: Service) -> dict[str, EndpointRequest]:
    """A service's own names lead to its virtual address where it has one, else to its tasks in turn."""
    virtual = {address.network_id for address in service.virtual_ips}
    return {attachment.target: EndpointRequest() for attachment in _ingress(service)} | {
        attachment.target: EndpointRequest(
            aliases=_aliases((service.spec.name, *attachment.aliases), attachment.target in virtual),
            driver_opts=attachment.driver_opts,
        )
        for attachment in attachments(service)
        if attachment.target not in ("host", "none", "bridge")
    }


def _aliases(names: Iterable[str], virtual: bool) -> list[str]:
    names = list(dict.fromkeys(names))
    return [f"tasks.{name}" for name in names] + ([] if virtual else names)


def _host_entry(text: str) -> str:
    """`address name alias…` (the hosts file's order) as `name:address`."""
    words = text.split()
    return f"{words[1]}:{words[0]}" if len(words) > 1 else text


def check_privileges(wanted: Privileges | None) -> None:
    """Raise for what cannot become security options; what would be ignored is refused instead."""
    if wanted is None:
        return
    if wanted.credential_spec:
        raise NotImplementedYet("credential specs of services are for Windows: Husk does not implement them")
    if wanted.app_armor is not None and wanted.app_armor.mode not in ("", "default", "disabled"):
        raise InvalidParameter(_PREFIX + f"unknown AppArmor mode {wanted.app_armor.mode!r}: default and disabled are")
    if wanted.seccomp is not None:
        _check_seccomp(wanted.seccomp)
    security.check(privilege_options(wanted))


def privilege_options(wanted: Privileges) -> list[str]:
    """The words of `--security-opt` that mean the same."""
    found = ["no-new-privileges"] if wanted.no_new_privileges else []
    if wanted.seccomp is not None and wanted.seccomp.mode == "unconfined":
        found.append("seccomp=unconfined")
    if wanted.seccomp is not None and wanted.seccomp.mode == "custom":
        found.append("seccomp=" + _profile(wanted.seccomp))
    if wanted.app_armor is not None and wanted.app_armor.mode == "disabled":
        found.append("apparmor=unconfined")
    return found + (_labels(wanted.se_linux_context) if wanted.se_linux_context is not None else [])


def _check_seccomp(wanted: SeccompMode) -> None:
    if wanted.mode not in ("", "default", "unconfined", "custom"):
        raise InvalidParameter(_PREFIX + f"unknown seccomp mode {wanted.mode!r}: default, unconfined and custom are")
    if bool(wanted.profile) != (wanted.mode == "custom"):
        raise InvalidParameter(_PREFIX + "a seccomp profile goes with the mode custom, and that with a profile")


def _profile(wanted: SeccompMode) -> str:
    try:
        return base64.b64decode(wanted.profile, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise InvalidParameter(_PREFIX + f"the seccomp profile must be text in base64: {error}") from None


def _labels(context: SELinuxContext) -> list[str]:
    if context.disable:
        return ["label=disable"]
    parts = {"user": context.user, "role": context.role, "type": context.type, "level": context.level}
    return [f"label={name}:{value}" for name, value in parts.items() if value]
