"""Secrets and configs: kept sealed, given to tasks as files, shown to nobody else."""

import json
import os
from pathlib import Path

import pytest

from tests.support.swarm import Swarm
from tests.support.waiting import until

VALUE = "the-crown-jewels"


@pytest.fixture(params=["secret", "config"])
def kind(request: pytest.FixtureRequest, swarm: Swarm) -> str:
    for name in swarm.daemon.docker(request.param, "ls", "-q").stdout.split():
        swarm.daemon.docker(request.param, "rm", name)
    return str(request.param)


def make(swarm: Swarm, kind: str, name: str, *options: str, value: str = VALUE) -> str:
    return swarm.daemon.docker(kind, "create", *options, name, "-", input=value).stdout.strip()


def test_the_life_of_one(swarm: Swarm, kind: str) -> None:
    daemon = swarm.daemon
    made = make(swarm, kind, "key", "--label", "a=b")
    [shown] = json.loads(daemon.docker(kind, "inspect", "key").stdout)
    assert (shown["ID"], shown["Spec"]["Name"], shown["Spec"]["Labels"]) == (made, "key", {"a": "b"})
    assert ("Data" in shown["Spec"]) == (kind == "config")
    conflict = daemon.docker(kind, "create", "key", "-", input="x", check=False)
    assert f"{kind} key already exists" in conflict.stderr
    make(swarm, kind, "other")

    def names(*filters: str) -> list[str]:
        return daemon.docker(kind, "ls", "--format", "{{.Name}}", *filters).stdout.split()

    assert sorted(names()) == ["key", "other"]
    assert names("-f", "label=a=b") == names("-f", "name=ke") == names("-f", f"id={made}") == ["key"]
    version = shown["Version"]["Index"]
    spec = {"Name": "key", "Labels": {"c": "d"}}
    assert daemon.http("POST", f"/{kind}s/key/update?version={version}", spec).status == 200
    stale = daemon.http("POST", f"/{kind}s/key/update?version={version}", spec)
    assert "update out of sequence" in stale.message
    newer = daemon.http("GET", f"/{kind}s/{made[:8]}").json()
    assert newer["Spec"]["Labels"] == {"c": "d"} and newer["Version"]["Index"] > version
    changed = {"Name": "key", "Data": "eA=="}
    refused = daemon.http("POST", f"/{kind}s/key/update?version={newer['Version']['Index']}", changed)
    assert "only updates to Labels are allowed" in refused.message
    daemon.docker(kind, "rm", "key")
    assert daemon.http("GET", f"/{kind}s/key").status == 404
    assert daemon.http("DELETE", f"/{kind}s/key").status == 404


@pytest.mark.parametrize(
    "body",
    [{}, {"Name": "x"}, {"Name": "x", "Data": "?"}, {"Name": "x", "Data": "\xf1"}, {"Name": "-x", "Data": "eA=="}],
)
def test_what_is_wrong_is_refused(swarm: Swarm, kind: str, body: dict[str, str]) -> None:
    assert swarm.daemon.http("POST", f"/{kind}s/create", body).status == 400


def test_nothing_readable_is_on_the_disk(swarm: Swarm, kind: str) -> None:
    make(swarm, kind, "key")
    swarm.create("web", f"--{kind}", "source=key,target=/key")
    swarm.settles("web", 1)
    root = swarm.daemon.config.data_root
    key = root / "swarm.key"
    assert key.stat().st_mode & 0o777 == 0o600
    for path in [*root.glob("state.db*"), *root.glob("containers/**/*")]:
        if path.is_file() and "/rootfs/" not in str(path):
            assert VALUE.encode() not in path.read_bytes(), path
    assert VALUE not in swarm.daemon.log(10_000)


def test_a_task_finds_its_files(swarm: Swarm, kind: str) -> None:
    daemon = swarm.daemon
    make(swarm, kind, "plain")
    make(swarm, kind, "own", value="other\n")
    options = (f"--{kind}", "plain", f"--{kind}", "source=own,target=/etc/app/own.conf,uid=1000,gid=1001,mode=0400")
    swarm.create("web", *options)
    [container] = swarm.settles("web", 1)
    place = "/run/secrets/plain" if kind == "secret" else "/plain"
    assert daemon.docker("exec", container, "cat", place).stdout == VALUE
    assert daemon.docker("exec", container, "stat", "-c", "%u %g %a", place).stdout == "0 0 444\n"
    assert daemon.docker("exec", container, "cat", "/etc/app/own.conf").stdout == "other\n"
    assert daemon.docker("exec", container, "stat", "-c", "%u %g %a", "/etc/app/own.conf").stdout == "1000 1001 400\n"
    mounts = daemon.docker("exec", container, "cat", "/proc/mounts").stdout
    line = next(line for line in mounts.splitlines() if f" {place} " in line)
    assert line.startswith("tmpfs ") and " ro," in line
    assert VALUE not in daemon.docker("inspect", container).stdout
    assert VALUE not in daemon.docker("service", "inspect", "web").stdout
    diff = daemon.http("GET", f"/containers/{container}/changes").body
    assert VALUE.encode() not in diff
    swarm.daemon.docker("service", "rm", "web")
    directory = Path(daemon.config.exec_root / "secrets")
    until(lambda: not os.listdir(directory), "nothing is left of the files")


def test_one_in_use_is_not_removed(swarm: Swarm, kind: str) -> None:
    daemon = swarm.daemon
    make(swarm, kind, "key")
    swarm.create("web", f"--{kind}", "key")
    refused = daemon.docker(kind, "rm", "key", check=False)
    assert f"{kind} 'key' is in use by the following service: web" in refused.stderr
    swarm.update("web", f"--{kind}-rm", "key")
    daemon.docker(kind, "rm", "key")
    word = kind.title()
    file = {"Name": "gone", "UID": "0", "GID": "0", "Mode": 0o444}
    reference = {f"{word}ID": "gone", f"{word}Name": "gone", "File": file}
    template = {"ContainerSpec": {"Image": "busybox", f"{word}s": [reference]}}
    body = {"Name": "x", "TaskTemplate": template}
    refused_too = daemon.http("POST", "/services/create", body)
    assert refused_too.status == 400 and f"{kind} not found: gone" in refused_too.message


def test_an_update_brings_another(swarm: Swarm, kind: str) -> None:
    make(swarm, kind, "one", value="1")
    make(swarm, kind, "two", value="2")
    swarm.create("web", f"--{kind}", "source=one,target=/value", "--update-monitor", "200ms")
    swarm.settles("web", 1)
    swarm.update("web", f"--{kind}-rm", "one", f"--{kind}-add", "source=two,target=/value")
    until(lambda: swarm.update_state("web") == "completed", "it is updated")
    assert swarm.daemon.docker("exec", swarm.containers("web")[0], "cat", "/value").stdout == "2"


def test_they_survive_the_daemon(fresh_swarm: Swarm) -> None:
    swarm = fresh_swarm
    make(swarm, "secret", "key")
    swarm.create("web", "--secret", "key")
    before = swarm.settles("web", 1)
    swarm.daemon.kill9()
    swarm.daemon.start()
    assert swarm.settles("web", 1) == before
    read = ("exec", before[0], "cat", "/run/secrets/key")
    assert swarm.daemon.docker(*read).stdout == VALUE
    swarm.daemon.docker("rm", "-f", before[0])
    until(lambda: swarm.containers("web") not in ([], before), "it is replaced")
    [container] = swarm.settles("web", 1)
    assert swarm.daemon.docker("exec", container, "cat", "/run/secrets/key").stdout == VALUE


def test_a_templated_config(swarm: Swarm) -> None:
    make(swarm, "config", "page", "--template-driver", "golang", value="I am {{.Service.Name}}.{{.Task.Slot}}\n")
    swarm.create("web", "--config", "page")
    [container] = swarm.settles("web", 1)
    assert swarm.daemon.docker("exec", container, "cat", "/page").stdout == "I am web.1\n"
