"""A task's template as a container's configuration."""

import base64

import msgspec
import pytest

from husk.errors import InvalidParameter, NotImplementedYet
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import (
    Amount,
    AppArmorMode,
    ContainerSpec,
    NetworkAttachment,
    PortConfig,
    Privileges,
    SeccompMode,
    SELinuxContext,
    Service,
    ServiceSpec,
    Task,
    TaskResources,
    TaskSpec,
    TaskStatus,
    VirtualIP,
)
from husk.swarm.spec import containers
from husk.swarm.spec.containers import container_config

NODE = NodeFacts(id="n1", hostname="alpha")


def made(template: TaskSpec, slot: int = 2, **changes: object):
    spec = ServiceSpec(name="web", labels={"team": "blue"}, task_template=template)
    service = Service(id="s1", version=1, created_at="", updated_at="", spec=spec)
    service = msgspec.structs.replace(service, **changes)
    task = Task(
        id="t1", version=1, created_at="", created_ns=0, updated_at="", service_id="s1", service_name="web", slot=slot,
        node_id="n1", spec=template, spec_version=1, status=TaskStatus(timestamp="", state="pending"),
    )  # fmt: skip
    return task, container_config(task, service, NODE)


def test_names_and_labels():
    _, (name, config, _, _) = made(TaskSpec(container_spec=ContainerSpec(image="busybox", labels={"a": "b"})))
    assert name == "web.2.t1" == config.labels["com.docker.swarm.task.name"]
    assert config.labels["com.docker.swarm.service.name"] == "web" and config.labels["a"] == "b"
    globally, _ = made(TaskSpec(container_spec=ContainerSpec(image="busybox")), slot=0)
    assert globally.name == "web.n1.t1"


def test_templates_are_filled_in():
    spec = ContainerSpec(
        image="x",
        hostname="{{.Service.Name}}-{{ .Task.Slot }}",
        env=["HOST={{.Node.Hostname}}", 'TEAM={{index .Service.Labels "team"}}'],
    )
    _, (_, config, _, _) = made(TaskSpec(container_spec=spec))
    assert config.hostname == "web-2"
    assert config.env == ["HOST=alpha", "TEAM=blue"]


def test_limits_hosts_and_grace():
    spec = ContainerSpec(image="x", hosts=["192.0.2.9 db database"], stop_grace_period=3 * 10**9)
    limits = TaskResources(limits=Amount(nano_cpus=5, memory_bytes=6, pids=7), reservations=Amount(memory_bytes=4))
    _, (_, config, host, _) = made(TaskSpec(container_spec=spec, resources=limits))
    assert (host.nano_cpus, host.memory, host.pids_limit, host.memory_reservation) == (5, 6, 7, 4)
    assert host.extra_hosts == ["db:192.0.2.9"]
    assert config.stop_timeout == 3


def test_names_on_networks():
    template = TaskSpec(
        container_spec=ContainerSpec(image="x"),
        networks=[NetworkAttachment(target="net1", aliases=["site"]), NetworkAttachment(target="net2")],
    )
    _, (_, _, host, endpoints) = made(template, virtual_ips=[VirtualIP(network_id="net1", addr="10.0.0.2/24")])
    assert host.network_mode == "net1"
    assert endpoints["net1"].aliases == ["tasks.web", "tasks.site"], "its own names are the virtual address's"
    assert endpoints["net2"].aliases == ["tasks.web", "web"]


def test_only_ports_in_host_mode_are_the_containers_own():
    ports = [
        PortConfig(target_port=80, published_port=8080, publish_mode="host"),
        PortConfig(target_port=81, published_port=8081),
    ]
    _, (_, config, host, _) = made(TaskSpec(container_spec=ContainerSpec(image="x")), ports=ports)
    assert list(host.port_bindings) == ["80/tcp"]
    assert set(config.exposed_ports or {}) == {"80/tcp", "81/tcp"}


PROFILE = '{"defaultAction": "SCMP_ACT_ALLOW"}'


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_each_has_its_word():
    wanted = Privileges(
        no_new_privileges=True,
        seccomp=SeccompMode(mode="custom", profile=encoded(PROFILE)),
        app_armor=AppArmorMode(mode="disabled"),
        se_linux_context=SELinuxContext(user="u", level="s0:c1"),
    )
    containers.check_privileges(wanted)
    assert containers.privilege_options(wanted) == [
        "no-new-privileges", f"seccomp={PROFILE}", "apparmor=unconfined", "label=user:u", "label=level:s0:c1",
    ]  # fmt: skip


def test_what_is_usual_needs_no_word():
    usual = Privileges(seccomp=SeccompMode(mode="default"), app_armor=AppArmorMode(mode="default"))
    containers.check_privileges(usual)
    containers.check_privileges(None)
    assert containers.privilege_options(usual) == []
    assert containers.privilege_options(Privileges(seccomp=SeccompMode(mode="unconfined"))) == ["seccomp=unconfined"]
    assert containers.privilege_options(Privileges(se_linux_context=SELinuxContext(disable=True))) == ["label=disable"]


@pytest.mark.parametrize(
    "wanted",
    [
        Privileges(seccomp=SeccompMode(mode="strict")),
        Privileges(seccomp=SeccompMode(mode="custom")),
        Privileges(seccomp=SeccompMode(mode="unconfined", profile=encoded(PROFILE))),
        Privileges(seccomp=SeccompMode(mode="custom", profile="not base64")),
        Privileges(seccomp=SeccompMode(mode="custom", profile=encoded("not a profile"))),
        Privileges(app_armor=AppArmorMode(mode="complain")),
    ],
)
def test_what_cannot_be_is_refused(wanted: Privileges):
    with pytest.raises(InvalidParameter):
        containers.check_privileges(wanted)


def test_credential_specs_are_for_others():
    with pytest.raises(NotImplementedYet):
        containers.check_privileges(Privileges(credential_spec={"File": "x"}))
