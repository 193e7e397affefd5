"""Texts that templates give for a task."""

import pytest

from husk.engine.model.container_config import DriverConfig, Mount, VolumeOptions
from husk.errors import InvalidParameter
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import ContainerSpec
from husk.swarm.spec.expand import check, expanded, payload, words_of
from tests.unit.swarm.manager.test_planner import make_service, make_task

NODE = NodeFacts(id="n1", hostname="host", architecture="x86_64")


def words(slot: int = 2):
    service = make_service()
    service.spec.labels = {"tier": "back"}
    return words_of(make_task(slot, id="t1"), service, NODE)


def test_variables_mounts_and_the_host_name_are_expanded():
    volume = Mount(
        type="volume",
        source="data-{{.Task.Slot}}",
        target="/{{.Service.Name}}",
        volume_options=VolumeOptions(
            labels={"node": "{{.Node.ID}}"}, driver_config=DriverConfig(options={"o": "{{.Task.ID}}"})
        ),
    )
    spec = ContainerSpec(
        image="{{.Task.ID}}",
        args=["{{.Task.ID}}"],
        hostname="{{.Node.Hostname}}-{{.Task.Slot}}",
        env=["{{.Task.ID}}={{.Task.Name}}", "ARCH={{.Node.Platform.Architecture}}/{{.Node.Platform.OS}}", "PLAIN"],
        mounts=[volume],
    )
    found = expanded(spec, words())
    assert (found.hostname, found.image, found.args) == ("host-2", "{{.Task.ID}}", ["{{.Task.ID}}"])
    assert found.env == ["{{.Task.ID}}=web.2.t1", "ARCH=x86_64/linux", "PLAIN"]
    [mount] = found.mounts
    assert (mount.source, mount.target) == ("data-2", "/web")
    assert mount.volume_options is not None and mount.volume_options.labels == {"node": "n1"}
    assert mount.volume_options.driver_config is not None
    assert mount.volume_options.driver_config.options == {"o": "t1"}
    assert spec.mounts == [volume] and volume.source == "data-{{.Task.Slot}}", "the template stays"


def test_without_a_slot_the_node_stands_for_it():
    assert expanded(ContainerSpec(hostname="{{.Task.Slot}}"), words(0)).hostname == "n1"


def test_a_secret_may_hold_others_and_variables():
    files = {"secret": {"key": "s3cret {{.Task.ID}}"}.__getitem__, "config": {"app": "on"}.__getitem__}
    spec = ContainerSpec(env=["MODE=fast=yes", "BARE", "T={{.Task.ID}}"])
    text = '{{secret "key"}};{{config "app"}};{{env "MODE"}};{{env "BARE"}};{{env "T"}};{{.Service.Labels.tier}}'
    said = payload(text.encode() + b"\xff", words(), spec, files)
    assert said == b"s3cret {{.Task.ID}};on;fast=yes;;{{.Task.ID}};back\xff"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (ContainerSpec(env=["A={{.Nope}}"]), 'expanding env failed: expanding env "A={{.Nope}}": template: '),
        (ContainerSpec(hostname="{{"), "expanding hostname failed: template: "),
        (ContainerSpec(mounts=[Mount(source="{{x}}")]), 'expanding mounts failed: expanding mount source "{{x}}"'),
        (ContainerSpec(env=['A={{secret "x"}}']), 'function "secret" not defined'),
    ],
)
def test_what_cannot_be_expanded_is_refused(spec: ContainerSpec, said: str):
    with pytest.raises(InvalidParameter) as refused:
        check(spec, {})
    assert refused.value.message.startswith("rpc error: code = InvalidArgument desc = ")
    assert said in refused.value.message


def test_what_can_be_is_not():
    check(ContainerSpec(env=["A={{.Task.Slot}}", 'B={{index .Service.Labels "x"}}'], hostname="h{{.Node.ID}}"), {})


def test_all_templates_of_a_container_share_what_they_may_cost():
    labels = {str(number): "x" for number in range(1000)}
    again = "{{range .Service.Labels}}{{$x := .}}{{end}}"
    check(ContainerSpec(env=[f"A={again}"]), labels)
    with pytest.raises(InvalidParameter, match="does not come to an end"):
        check(ContainerSpec(env=[f"A{number}={again}" for number in range(100)]), labels)
