"""`docker commit` through a real daemon: what a container changed becomes an image that runs."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.support.daemon import Answer, Daemon
from tests.support.images import Stored, forget_images, settled, stored
from tests.support.lifecycle import ready
from tests.support.waiting import until

BIG = 300_000_000


@pytest.fixture(autouse=True)
def only_busybox(daemon: Daemon) -> Iterator[Stored]:
    before = settled(daemon)
    yield before
    forget_images(daemon)
    until(lambda: stored(daemon) == before, "removing the images takes everything along")


def ran(daemon: Daemon, script: str, *options: str) -> str:
    """A container that ran `script` to its end."""
    container = daemon.docker("create", *options, "busybox", "sh", "-c", script).stdout.strip()
    assert daemon.docker("start", "-a", container).returncode == 0
    return container


def commit(daemon: Daemon, container: str, body: object = None, **query: Any) -> Answer:
    return daemon.http("POST", f"/commit?{urlencode({'container': container, **query}, doseq=True)}", body)


def inspect(daemon: Daemon, image: str) -> dict[str, Any]:
    found: dict[str, Any] = daemon.http("GET", f"/images/{image}/json").json()
    return found


def sh(daemon: Daemon, image: str, script: str) -> str:
    return daemon.docker("run", "--rm", image, "sh", "-c", script).stdout


def test_docker_commit(daemon: Daemon) -> None:
    container = ran(daemon, "echo made > /made; chmod 640 /made; chown 5:6 /made", "-e", "A=b", "-w", "/tmp")
    started = time.time()
    image = daemon.docker("commit", "-a", "Ann <a@b.c>", "-m", "a message", container, "my/app:1").stdout.strip()
    shown = inspect(daemon, "my/app:1")
    busybox = inspect(daemon, "busybox")
    assert shown["Id"] == image
    assert (shown["Author"], shown["Comment"]) == ("Ann <a@b.c>", "a message")
    assert shown["Parent"] == busybox["Id"]
    assert shown["RootFS"]["Layers"][:-1] == busybox["RootFS"]["Layers"]
    assert shown["Config"]["WorkingDir"] == "/tmp" and "A=b" in shown["Config"]["Env"]
    assert shown["Config"]["Cmd"][:2] == ["sh", "-c"]
    assert shown["Size"] == busybox["Size"] + len("made\n")
    assert sh(daemon, "my/app:1", "cat /made; stat -c '%a %u:%g' /made; pwd; echo $A") == "made\n640 5:6\n/tmp\nb\n"
    events = daemon.http("GET", f"/events?since={started}&until={time.time()}").body.splitlines()
    seen = [(event["Type"], event["Action"]) for event in map(json.loads, events)]
    assert ("container", "commit") in seen and ("image", "tag") in seen


def test_what_a_container_deleted_is_gone_from_the_image(daemon: Daemon) -> None:
    daemon.docker("commit", ran(daemon, "mkdir -p /d/old /e; echo 1 > /d/old/f; echo 2 > /d/g; echo 3 > /e/f"), "base")
    base = daemon.docker("create", "base", "sh", "-c", "rm -r /d; mkdir /d; echo new > /d/new; rm /e/f").stdout.strip()
    daemon.docker("start", "-a", base)
    daemon.docker("commit", base, "top")
    assert sh(daemon, "top", "find /d /e") == "/d\n/d/new\n/e\n"
    assert sh(daemon, "base", "find /d /e | sort") == "/d\n/d/g\n/d/old\n/d/old/f\n/e\n/e/f\n"


def test_links_modes_and_special_files_are_kept(daemon: Daemon) -> None:
    script = "echo x > /one; ln /one /two; ln -s one /three; mkfifo /pipe; chmod 4755 /one; mkdir -m 1777 /open"
    daemon.docker("commit", ran(daemon, script), "kept")
    shown = sh(daemon, "kept", "stat -c '%n %a %h %F' /one /two /three /pipe /open")
    assert shown.splitlines() == [
        "/one 4755 2 regular file",
        "/two 4755 2 regular file",
        "/three 777 1 symbolic link",
        "/pipe 644 1 fifo",
        "/open 1777 2 directory",
    ]


def test_files_that_husk_mounts_are_not_part_of_the_image(daemon: Daemon) -> None:
    image = daemon.docker("commit", ran(daemon, "true"), "nothing").stdout.strip()
    # Nothing was changed: no layer is added.
    assert inspect(daemon, image)["RootFS"] == inspect(daemon, "busybox")["RootFS"]
    assert sh(daemon, "nothing", "echo hi") == "hi\n"


def test_a_container_that_never_ran(daemon: Daemon) -> None:
    container = daemon.docker("create", "busybox", "echo", "ran").stdout.strip()
    daemon.docker("commit", container, "early")
    assert daemon.docker("run", "--rm", "early").stdout == "ran\n"


def test_changes(daemon: Daemon) -> None:
    changes = [
        'CMD ["echo", "changed"]',
        "ENV A=1 B='two words'",
        "LABEL team=red",
        "EXPOSE 80 53/udp",
        "USER 33",
        "WORKDIR /var/www",
        "STOPSIGNAL SIGINT",
        "ONBUILD RUN true",
    ]
    container = ran(daemon, "true", "-e", "A=0", "-e", "C=3", "--label", "own=1")
    arguments = [word for change in changes for word in ("-c", change)]
    daemon.docker("commit", *arguments, container, "changed")
    config = inspect(daemon, "changed")["Config"]
    assert config["Cmd"] == ["echo", "changed"]
    assert {"A=1", "B=two words", "C=3"} <= set(config["Env"]) and "A=0" not in config["Env"]
    assert config["Labels"] == {"team": "red", "own": "1"}
    assert config["ExposedPorts"] == {"80/tcp": {}, "53/udp": {}}
    assert (config["User"], config["WorkingDir"], config["StopSignal"]) == ("33", "/var/www", "SIGINT")
    assert config["OnBuild"] == ["RUN true"]
    assert daemon.docker("run", "--rm", "changed").stdout == "changed\n"
    assert sh(daemon, "changed", "id -u; pwd") == "33\n/var/www\n"


def test_a_configuration_in_the_body(daemon: Daemon) -> None:
    container = ran(daemon, "true", "-e", "A=0")
    answer = commit(daemon, container, {"Cmd": ["env"], "Env": ["A=1"], "Labels": {"x": "y"}}, repo="body", tag="1")
    assert answer.status == 201
    config = inspect(daemon, "body:1")["Config"]
    assert config["Cmd"] == ["env"] and config["Labels"] == {"x": "y"}
    assert "A=1" in config["Env"] and "A=0" not in config["Env"]


def test_a_body_without_a_configuration(daemon: Daemon) -> None:
    """docker 20.10 sends `null`."""
    daemon.docker("create", "--name", "made", "busybox", "true")
    try:
        headers = {"Content-Type": "application/json"}
        answer = daemon.http("POST", "/commit?container=made&repo=null&tag=1", b"null", headers)
        assert answer.status == 201, answer.body
        assert daemon.http("GET", "/images/null:1/json").json()["Config"]["Cmd"] == ["true"]
    finally:
        daemon.docker("rm", "made")


def test_an_entrypoint_by_a_change(daemon: Daemon) -> None:
    daemon.docker("commit", "-c", 'ENTRYPOINT ["echo", "in"]', "-c", 'CMD ["front"]', ran(daemon, "true"), "entry")
    assert daemon.docker("run", "--rm", "entry").stdout == "in front\n"
    assert daemon.docker("run", "--rm", "entry", "other").stdout == "in other\n"


def test_without_a_name_the_image_has_none(daemon: Daemon) -> None:
    answer = commit(daemon, ran(daemon, "echo x > /x"))
    image = answer.json()["Id"]
    assert answer.status == 201 and image.startswith("sha256:")
    assert inspect(daemon, image)["RepoTags"] == []
    assert image in daemon.docker("images", "-q", "--no-trunc", "--filter", "dangling=true").stdout
    assert sh(daemon, image, "cat /x") == "x\n"


@pytest.mark.parametrize("pause", [True, False])
def test_a_running_container(daemon: Daemon, pause: bool) -> None:
    container = daemon.docker("run", "-d", "busybox", "sh", "-c", "echo up > /up; echo up; sleep 600").stdout.strip()
    until(lambda: daemon.docker("logs", container).stdout == "up\n", "it runs")
    started = time.time()
    daemon.docker("commit", f"--pause={str(pause).lower()}", container, "live")
    assert sh(daemon, "live", "cat /up") == "up\n"
    assert json.loads(daemon.docker("inspect", container).stdout)[0]["State"]["Status"] == "running"
    events = daemon.http("GET", f"/events?since={started}&until={time.time()}").body.splitlines()
    actions = [event["Action"] for event in map(json.loads, events) if event["Actor"]["ID"] == container]
    assert actions == (["pause", "unpause", "commit"] if pause else ["commit"])


def test_a_paused_container_stays_paused(daemon: Daemon) -> None:
    container = daemon.docker("run", "-d", "busybox", "sleep", "600").stdout.strip()
    daemon.docker("pause", container)
    daemon.docker("commit", container, "frozen")
    assert json.loads(daemon.docker("inspect", container).stdout)[0]["State"]["Status"] == "paused"


def test_a_container_that_ends_at_this_moment(daemon: Daemon) -> None:
    for n in range(20):
        container = daemon.http("POST", "/containers/create", {"Image": "busybox", "Cmd": ["touch", "/x"]}).json()["Id"]
        assert daemon.http("POST", f"/containers/{container}/start").status == 204
        answer = commit(daemon, container)
        assert answer.status == 201, (n, answer.body)


def big(daemon: Daemon) -> str:
    """A running container whose commit takes a while: there is much to read, though nothing was written."""
    return ready(daemon, f"truncate -s {BIG} /big; echo ready; exec sleep 600")


def status_of(daemon: Daemon, container: str) -> str:
    return str(daemon.http("GET", f"/containers/{container}/json").json()["State"]["Status"])


@pytest.mark.parametrize("verb", ["kill", "stop?t=0", "unpause"])
def test_a_container_is_stopped_while_it_is_committed(daemon: Daemon, verb: str) -> None:
    container = big(daemon)
    with ThreadPoolExecutor(1) as threads:
        committing = threads.submit(commit, daemon, container)
        until(lambda: status_of(daemon, container) == "paused", "the commit has begun")
        assert daemon.http("POST", f"/containers/{container}/{verb}").status == 204
        assert not committing.done()
        assert status_of(daemon, container) == ("running" if verb == "unpause" else "exited")
        answer = committing.result()
    assert answer.status == 201
    assert sh(daemon, answer.json()["Id"], "stat -c %s /big") == f"{BIG}\n"


def test_a_container_is_removed_while_it_is_committed(daemon: Daemon) -> None:
    container = big(daemon)
    before = settled(daemon)
    with ThreadPoolExecutor(1) as threads:
        committing = threads.submit(commit, daemon, container)
        until(lambda: status_of(daemon, container) == "paused", "the commit has begun")
        assert daemon.http("DELETE", f"/containers/{container}?force=1").status == 204
        answer = committing.result()
    assert (answer.status, "which is being removed" in answer.message) == (409, True)
    until(lambda: stored(daemon) == before, "nothing is left of it")


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ({"changes": "RUN true"}, 400, "RUN is not a valid change command"),
        ({"changes": "NONSENSE x"}, 400, "NONSENSE is not a valid change command"),
        ({"changes": ["ENV A=1", "EXPOSE many"]}, 400, "invalid containerPort: many"),
        ({"changes": "STOPSIGNAL SIGWHAT"}, 400, None),
        ({"repo": "UPPER"}, 400, None),
        ({"repo": "a", "tag": "b c"}, 400, "invalid tag format"),
        ({"repo": f"a@sha256:{'0' * 64}"}, 400, None),
    ],
)
def test_bad_requests_change_nothing(daemon: Daemon, query: dict[str, Any], status: int, message: str | None) -> None:
    container = daemon.docker("run", "-d", "busybox", "sleep", "600").stdout.strip()
    before = settled(daemon)
    answer = commit(daemon, container, **query)
    assert answer.status == status, answer.body
    assert message is None or answer.message == message
    assert stored(daemon) == before
    assert json.loads(daemon.docker("inspect", container).stdout)[0]["State"]["Status"] == "running"


def test_an_unknown_container(daemon: Daemon) -> None:
    answer = commit(daemon, "nobody")
    assert (answer.status, answer.message) == (404, "No such container: nobody")
    assert daemon.http("POST", "/commit").status in (400, 404)
    container = daemon.docker("create", "busybox").stdout.strip()
    assert daemon.http("POST", f"/commit?container={container}", b"[]").status == 400
    assert daemon.http("POST", f"/commit?container={container}", b"{nonsense").status == 400


def test_the_same_changes_share_one_layer(daemon: Daemon) -> None:
    container = ran(daemon, "echo x > /x")
    daemon.docker("commit", container, "one")
    layers = stored(daemon).layers
    daemon.docker("commit", "-m", "again", container, "two")
    assert stored(daemon).layers == layers
    assert inspect(daemon, "one")["RootFS"] == inspect(daemon, "two")["RootFS"]
    daemon.docker("rmi", "one")
    assert sh(daemon, "two", "cat /x") == "x\n"


def test_many_at_once(daemon: Daemon) -> None:
    containers = [ran(daemon, f"echo {n} > /n") for n in range(4)]

    def make(n: int) -> int:
        return commit(daemon, containers[n % 4], repo=f"many{n}", pause=0).status

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(make, range(8))) == {201}
    for n in range(8):
        assert sh(daemon, f"many{n}", "cat /n") == f"{n % 4}\n"


def test_a_container_of_a_removed_image(daemon: Daemon) -> None:
    daemon.docker("commit", ran(daemon, "echo base > /base"), "base")
    container = daemon.docker("create", "base", "sh", "-c", "echo top > /top").stdout.strip()
    daemon.docker("start", "-a", container)
    daemon.docker("rmi", "-f", inspect(daemon, "base")["Id"])
    daemon.docker("commit", container, "orphan")
    assert sh(daemon, "orphan", "cat /base /top") == "base\ntop\n"
