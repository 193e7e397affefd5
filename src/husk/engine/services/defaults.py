"""What does a service do where it says nothing? The values in force, written out for those who ask. Pure."""

import msgspec

from husk.engine.services.model import (
    SECOND,
    DNSConfig,
    EndpointSpec,
    ServiceSpec,
    TaskResources,
    TaskRestartPolicy,
    UpdateConfig,
)
from husk.engine.services.planner import DEFAULT_RESTART_DELAY
from husk.engine.services.updates import DEFAULT_MONITOR

STOP_GRACE_PERIOD = 10 * SECOND


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
        restart_policy=msgspec.structs.replace(
            policy,
            condition=policy.condition or "any",
            delay=DEFAULT_RESTART_DELAY if policy.delay is None else policy.delay,
        ),
        runtime=template.runtime or "container",
    )
    is_job = spec.mode.is_job
    return msgspec.structs.replace(
        spec,
        task_template=template,
        update_config=None if is_job else _update(spec.update_config),
        rollback_config=None if is_job else _update(spec.rollback_config),
        endpoint_spec=spec.endpoint_spec or EndpointSpec(),
    )


def _update(config: UpdateConfig | None) -> UpdateConfig:
    config = config or UpdateConfig()
    return msgspec.structs.replace(
        config,
        monitor=config.monitor or DEFAULT_MONITOR,
        failure_action=config.failure_action or "pause",
        order=config.order or "stop-first",
    )
