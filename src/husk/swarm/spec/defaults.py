"""The defaults of a service: those that are kept with it, and those in force that are shown to who asks. Pure."""

import msgspec

from husk.swarm.model.services import (
    SECOND,
    DNSConfig,
    Mode,
    Placement,
    Replicated,
    ReplicatedJob,
    ServiceSpec,
    TaskResources,
    TaskRestartPolicy,
    UpdateConfig,
)

DEFAULT_MONITOR = 5 * SECOND
DEFAULT_RESTART_DELAY = 5 * SECOND
DEFAULT_UPDATE = UpdateConfig(parallelism=1)
STOP_GRACE_PERIOD = 10 * SECOND
ISOLATIONS = ("default", "process", "hyperv")


def complete(spec: ServiceSpec) -> None:
    """Write out what a client left empty and reads as one certain word."""
    _complete_mode(spec.mode)
    template = spec.task_template
    template.runtime = ""
    if template.container_spec is not None and template.container_spec.isolation not in ISOLATIONS:
        template.container_spec.isolation = "default"
    if template.restart_policy is not None:
        template.restart_policy.condition = template.restart_policy.condition or "any"
    for config in (spec.update_config, spec.rollback_config):
        if config is not None:
            config.failure_action = config.failure_action or "pause"
            config.order = config.order or "stop-first"
    if spec.endpoint_spec is not None:
        spec.endpoint_spec.mode = spec.endpoint_spec.mode or "vip"
        for port in spec.endpoint_spec.ports:
            port.protocol, port.publish_mode = port.protocol or "tcp", port.publish_mode or "ingress"


def _complete_mode(mode: Mode) -> None:
    if not (mode.replicated or mode.is_global or mode.is_job):
        mode.replicated = Replicated()
    if mode.replicated_job is not None:
        job = mode.replicated_job
        concurrent = job.max_concurrent or 1
        mode.replicated_job = ReplicatedJob(
            max_concurrent=concurrent, total_completions=job.total_completions or concurrent
        )


def with_defaults(spec: ServiceSpec) -> ServiceSpec:
    template = spec.task_template
    policy = template.restart_policy or TaskRestartPolicy()
    container = template.container_spec
    if container is not None:
        grace = STOP_GRACE_PERIOD if container.stop_grace_period is None else container.stop_grace_period
        container = msgspec.structs.replace(
            container, stop_grace_period=grace, dns_config=container.dns_config or DNSConfig()
        )
    template = msgspec.structs.replace(
        template,
        container_spec=container,
        resources=template.resources or TaskResources(),
        placement=template.placement or Placement(),
        restart_policy=msgspec.structs.replace(
            policy, delay=DEFAULT_RESTART_DELAY if policy.delay is None else policy.delay
        ),
    )
    return msgspec.structs.replace(
        spec,
        task_template=template,
        update_config=_update(spec.update_config),
        rollback_config=_update(spec.rollback_config),
    )


def _update(config: UpdateConfig | None) -> UpdateConfig:
    config = config or DEFAULT_UPDATE
    return msgspec.structs.replace(config, monitor=config.monitor or DEFAULT_MONITOR)
