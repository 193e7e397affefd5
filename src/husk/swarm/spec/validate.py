"""Checks a service that is declared; says what is wrong in Docker's words and changes nothing. Pure."""

from collections.abc import Sequence

import msgspec

from husk.errors import InvalidParameter, NotImplementedYet
from husk.registry import reference
from husk.swarm.model.ids import check_service_name
from husk.swarm.model.placement import check_constraint
from husk.swarm.model.services import ContainerSpec, ServiceSpec, UpdateConfig
from husk.swarm.spec import containers, expand

_PREFIX = "rpc error: code = InvalidArgument desc = "
# A record has the specification before the last update, too, and no store takes more than 1.5 MiB at once.
MOST_BYTES = 640 * 1024
CONDITIONS = ("", "none", "on-failure", "any")
# A task takes two processes at least, and Linux numbers no more than 2^22.
MOST_TASKS = 2**21
MOUNT_TYPES = ("bind", "volume", "tmpfs", "npipe", "cluster")
PROTOCOLS = ("", "tcp", "udp", "sctp")


def check(spec: ServiceSpec, former: Sequence[ServiceSpec | None] = ()) -> None:
    """`former` are specifications that the service has had: constraints that were taken then are taken again."""
    check_service_name(spec.name)
    if (size := len(msgspec.json.encode(spec))) > MOST_BYTES:
        raise InvalidParameter(f"{_PREFIX}the service's specification has {size} bytes: {MOST_BYTES} are taken at most")
    template = spec.task_template
    if template.plugin_spec is not None or template.network_attachment_spec is not None:
        raise NotImplementedYet("services of plugins and network attachments are not implemented by Husk yet")
    if template.runtime not in ("", "container", "plugin"):
        raise InvalidParameter("unsupported runtime")
    if template.runtime == "plugin":
        raise InvalidParameter("mismatched Runtime and *Spec fields")
    if template.container_spec is None:
        raise InvalidParameter(_PREFIX + "TaskSpec: missing runtime")
    if not template.container_spec.image:
        raise InvalidParameter(_PREFIX + "ContainerSpec: image reference must be provided")
    reference.parse(template.container_spec.image)
    _check_files(template.container_spec)
    _check_mounts(template.container_spec)
    _check_health(template.container_spec)
    expand.check(template.container_spec, spec.labels)
    containers.check_privileges(template.container_spec.privileges)
    _check_mode(spec)
    policy = template.restart_policy
    if policy is not None:
        if policy.condition not in CONDITIONS:
            raise InvalidParameter(f'invalid RestartCondition: "{policy.condition}"')
        if (policy.delay or 0) < 0 or (policy.window or 0) < 0 or policy.max_attempts < 0:
            raise InvalidParameter(_PREFIX + "TaskSpec: restart-delay, window and attempts cannot be negative")
    had = {constraint for one in former if one is not None for constraint in _constraints(one)}
    for constraint in _constraints(spec):
        if constraint not in had:
            check_constraint(constraint)
    for config in (spec.update_config, spec.rollback_config):
        if config is not None:
            _check_update(config)
    _check_endpoint(spec)
    _check_resources(spec)


def _constraints(spec: ServiceSpec) -> list[str]:
    placement = spec.task_template.placement
    return placement.constraints if placement is not None else []


def _check_files(spec: ContainerSpec) -> None:
    """Each secret and config is named, and no two of a kind land in one place."""
    for kind, found in (
        ("secret", [(r.secret_id, r.secret_name, r.file) for r in spec.secrets]),
        ("config", [(r.config_id, r.config_name, r.file) for r in spec.configs if r.runtime is None]),
    ):
        targets: dict[str, str] = {}
        for id, name, file in found:
            if not id or not name or file is None or not file.name:
                raise InvalidParameter(_PREFIX + f"malformed {kind} reference")
            if "\0" in file.name or ".." in file.name.split("/"):
                raise InvalidParameter(_PREFIX + f"invalid target {file.name!r} of {kind} {name}")
            if file.name in targets:
                raise InvalidParameter(
                    _PREFIX + f"{kind} references '{targets[file.name]}' and '{name}' have a conflicting target: "
                    f"'{file.name}'"
                )
            targets[file.name] = name


def _check_mounts(spec: ContainerSpec) -> None:
    for mount in spec.mounts:
        if mount.type and mount.type.lower() not in MOUNT_TYPES:
            raise InvalidParameter(f'invalid MountType: "{mount.type}"')


def _check_health(spec: ContainerSpec) -> None:
    if (check := spec.health_check) is None:
        return
    for name, value in (
        ("Interval", check.interval),
        ("Timeout", check.timeout),
        ("StartPeriod", check.start_period),
        ("StartInterval", check.start_interval),
    ):
        if value and value < 10**6:
            raise InvalidParameter(_PREFIX + f"ContainerSpec: {name} in HealthConfig cannot be less than 1ms")
    if check.retries < 0:
        raise InvalidParameter(_PREFIX + "ContainerSpec: Retries in HealthConfig cannot be negative")


def _check_mode(spec: ServiceSpec) -> None:
    mode = spec.mode
    given = [m for m in (mode.replicated, mode.global_, mode.replicated_job, mode.global_job) if m is not None]
    if len(given) > 1:
        raise InvalidParameter("must specify only one service mode")
    if mode.replicated is not None:
        _check_number("replicas", mode.replicated.replicas)
    if mode.replicated_job is not None:
        _check_number("concurrent tasks", mode.replicated_job.max_concurrent or 0)
        _check_number("completions", mode.replicated_job.total_completions or 0)
    if mode.is_job and spec.update_config:
        raise InvalidParameter(_PREFIX + "Jobs may not have an update config")
    if mode.is_job and spec.rollback_config:
        raise InvalidParameter(_PREFIX + "Jobs may not have a rollback config")


def _check_number(what: str, number: int) -> None:
    if number < 0:
        raise InvalidParameter(f"Number of {what} must be non-negative")
    if number > MOST_TASKS:
        raise InvalidParameter(
            _PREFIX + f"{number} {what} are more than one host can ever have: {MOST_TASKS} is the most"
        )


def _check_update(config: UpdateConfig) -> None:
    if config.failure_action not in ("", "pause", "continue", "rollback"):
        raise InvalidParameter(f"unrecognized update failure action {config.failure_action}")
    if config.order not in ("", "stop-first", "start-first"):
        raise InvalidParameter(f"unrecognized update order {config.order}")
    if min(config.delay, config.monitor, config.parallelism) < 0:
        raise InvalidParameter(_PREFIX + "TaskSpec: update-delay, update-monitor and parallelism cannot be negative")
    if not 0.0 <= config.max_failure_ratio <= 1.0:
        raise InvalidParameter(_PREFIX + "TaskSpec: update-maxfailureratio cannot be less than 0 or bigger than 1")


def _check_endpoint(spec: ServiceSpec) -> None:
    endpoint = spec.endpoint_spec
    if endpoint is None:
        return
    if endpoint.mode not in ("", "vip", "dnsrr"):
        raise InvalidParameter(f'invalid resolution mode: "{endpoint.mode}"')
    seen = set()
    for port in endpoint.ports:
        if port.protocol not in PROTOCOLS or port.publish_mode not in ("", "ingress", "host"):
            raise InvalidParameter(_PREFIX + f"invalid port {port.target_port}/{port.protocol} ({port.publish_mode})")
        if not 1 <= port.target_port <= 65535 or not 0 <= port.published_port <= 65535:
            raise InvalidParameter(_PREFIX + "EndpointSpec: port is out of range")
        key = (port.protocol, port.published_port, port.publish_mode)
        if port.published_port and key in seen:
            raise InvalidParameter(_PREFIX + "EndpointSpec: duplicate published ports provided")
        seen.add(key)
        if endpoint.mode == "dnsrr" and port.publish_mode != "host":
            raise InvalidParameter(
                _PREFIX + "EndpointSpec: port published with ingress mode can't be used with dnsrr mode"
            )


def _check_resources(spec: ServiceSpec) -> None:
    resources = spec.task_template.resources
    for amount in (resources.limits, resources.reservations) if resources else ():
        if amount is None:
            continue
        for resource in amount.generic_resources:
            if (resource.named_resource_spec is None) == (resource.discrete_resource_spec is None):
                raise InvalidParameter(_PREFIX + "a generic resource is either named or discrete")
        if amount.memory_bytes and amount.memory_bytes < 4 * 1024 * 1024:
            raise InvalidParameter(_PREFIX + f"invalid memory value {amount.memory_bytes}: Must be at least 4MiB")
        if amount.nano_cpus and amount.nano_cpus < 10**6:
            raise InvalidParameter(_PREFIX + f"invalid cpu value {amount.nano_cpus / 10**9:g}: Must be at least 0.001")
