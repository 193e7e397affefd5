"""Templates in services, secrets and configs, as a task gets them."""

from collections.abc import Iterator

import pytest

from tests.integration.services.test_objects import make
from tests.support.swarm import Swarm
from tests.support.waiting import until

GOLANG = ("--template-driver", "golang")


@pytest.fixture
def objects(swarm: Swarm) -> Iterator[Swarm]:
    yield swarm
    swarm.remove_all()
    for kind in ("secret", "config"):
        for name in swarm.daemon.docker(kind, "ls", "-q").stdout.split():
            swarm.daemon.docker(kind, "rm", name)


def test_a_config_and_a_secret_hold_others(objects: Swarm) -> None:
    daemon = objects.daemon
    make(objects, "secret", "password", value="s3cret")
    make(objects, "config", "level", value="debug")
    text = 'db={{secret "pw"}} level={{config "/etc/level"}} mode={{env "MODE"}} {{.Service.Name}}.{{.Task.Slot}}'
    text += '{{if eq .Node.Platform.OS "linux"}} on linux{{end}} {{.Service.Labels.tier}}'
    make(objects, "config", "page", *GOLANG, value=text)
    make(objects, "secret", "whole", *GOLANG, value='{{ config "/etc/level" | printf "<%s>" }}')
    make(objects, "config", "plain", value=text)
    objects.create(
        "web", "--label", "tier=back", "--env", "MODE=fast", "--config", "page", "--config", "plain",
        "--config", "source=level,target=/etc/level", "--secret", "source=password,target=pw", "--secret", "whole",
    )  # fmt: skip
    [container] = objects.settles("web", 1)

    def read(path: str) -> str:
        return daemon.docker("exec", container, "cat", path).stdout

    assert read("/page") == "db=s3cret level=debug mode=fast web.1 on linux back"
    assert read("/run/secrets/whole") == "<debug>"
    assert read("/plain") == text, "without a driver it is no template"


def test_what_a_task_does_not_have_it_is_not_given(objects: Swarm) -> None:
    make(objects, "secret", "other", value="not for you")
    made = make(objects, "config", "page", *GOLANG, value='{{secret "other"}}')
    objects.create("web", "--restart-condition", "none", "--config", "page")
    until(lambda: objects.states("web") == ["rejected"], "it is told why")
    [task] = objects.tasks("web")
    assert f"failed to expand templated config {made}" in task["Status"]["Err"]
    assert "secret target other not found" in task["Status"]["Err"]


def test_settings_are_expanded_and_refused_where_they_cannot_be(objects: Swarm) -> None:
    daemon = objects.daemon
    daemon.docker("volume", "create", "data-1")
    objects.create(
        "web", "--hostname", "{{.Service.Name}}-{{.Task.Slot}}", "--env", 'WHO={{join "-" .Node.ID .Task.Name}}',
        "--mount", "type=volume,source=data-{{.Task.Slot}},target=/{{.Service.Name}}",
    )  # fmt: skip
    [container] = objects.settles("web", 1)
    shown = daemon.http("GET", f"/containers/{container}/json").json()
    [task] = objects.live("web")
    assert shown["Config"]["Hostname"] == "web-1"
    assert f"WHO={task['NodeID']}-web.1.{task['ID']}" in shown["Config"]["Env"]
    [mount] = shown["Mounts"]
    assert (mount["Name"], mount["Destination"]) == ("data-1", "/web")
    for container_spec in ({"Env": ["A={{.Nope}}"]}, {"Hostname": "{{"}, {"Env": ['A={{secret "password"}}']}):
        body = {"Name": "wrong", "TaskTemplate": {"ContainerSpec": {"Image": "busybox", **container_spec}}}
        answer = daemon.http("POST", "/services/create", body)
        assert answer.status == 400 and "InvalidArgument desc = expanding " in answer.message
    objects.remove_all()
    daemon.docker("volume", "rm", "data-1")
