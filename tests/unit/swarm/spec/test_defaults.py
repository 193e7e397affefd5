"""Defaults of a service where it says nothing."""

import pytest

from husk.swarm.model.services import (
    ContainerSpec,
    EndpointSpec,
    Mode,
    PortConfig,
    ReplicatedJob,
    ServiceSpec,
    TaskRestartPolicy,
    TaskSpec,
    UpdateConfig,
)
from husk.swarm.spec.defaults import STOP_GRACE_PERIOD, complete, with_defaults


def test_a_service_without_a_mode_is_replicated() -> None:
    spec = ServiceSpec(name="web")
    complete(spec)
    assert spec.mode.replicated is not None


@pytest.mark.parametrize(
    ("given", "concurrent", "total"),
    [(ReplicatedJob(), 1, 1), (ReplicatedJob(max_concurrent=3), 3, 3), (ReplicatedJob(total_completions=5), 1, 5)],
)
def test_a_job_runs_as_often_as_at_once_unless_it_says_more(given: ReplicatedJob, concurrent: int, total: int) -> None:
    spec = ServiceSpec(name="job", mode=Mode(replicated_job=given))
    complete(spec)
    assert spec.mode.replicated is None and spec.mode.replicated_job is not None
    assert (spec.mode.replicated_job.max_concurrent, spec.mode.replicated_job.total_completions) == (concurrent, total)


def test_empty_words_are_written_out() -> None:
    spec = ServiceSpec(
        name="web",
        task_template=TaskSpec(
            runtime="container",
            container_spec=ContainerSpec(image="x", isolation="odd"),
            restart_policy=TaskRestartPolicy(condition=""),
        ),
        update_config=UpdateConfig(failure_action="", order=""),
        endpoint_spec=EndpointSpec(mode="", ports=[PortConfig(target_port=80, protocol="", publish_mode="")]),
    )
    complete(spec)
    template = spec.task_template
    assert template.runtime == "" and template.container_spec is not None and template.restart_policy is not None
    assert (template.container_spec.isolation, template.restart_policy.condition) == ("default", "any")
    assert spec.update_config is not None and spec.endpoint_spec is not None
    assert (spec.update_config.failure_action, spec.update_config.order) == ("pause", "stop-first")
    (port,) = spec.endpoint_spec.ports
    assert (spec.endpoint_spec.mode, port.protocol, port.publish_mode) == ("vip", "tcp", "ingress")


def test_what_is_in_force_is_shown_and_what_was_said_stays() -> None:
    spec = ServiceSpec(name="web", task_template=TaskSpec(container_spec=ContainerSpec(image="x")))
    shown = with_defaults(spec)
    template = shown.task_template
    assert template.container_spec is not None and template.restart_policy is not None
    assert template.container_spec.stop_grace_period == STOP_GRACE_PERIOD
    assert template.restart_policy.delay and template.resources is not None and template.placement is not None
    assert shown.update_config is not None and shown.update_config.monitor
    assert spec.update_config is None and spec.task_template.restart_policy is None
    said = TaskSpec(
        container_spec=ContainerSpec(image="x", stop_grace_period=0), restart_policy=TaskRestartPolicy(delay=0)
    )
    again = with_defaults(ServiceSpec(name="web", task_template=said)).task_template
    assert again.container_spec is not None and again.restart_policy is not None
    assert (again.container_spec.stop_grace_period, again.restart_policy.delay) == (0, 0)
