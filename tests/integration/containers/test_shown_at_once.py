"""Answers are kept in their encoded form: whatever changes, the next inspect and the next list show it at once."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.lifecycle import create, inspect, post, started
from tests.support.waiting import until

Shown = dict[str, Any]


def listed(daemon: Daemon, container: str) -> Shown:
    answer = daemon.http("GET", "/containers/json?all=1")
    assert answer.status == 200
    return next((entry for entry in answer.json() if entry["Id"] == container), {})


def without(found: Shown, *names: str) -> Shown:
    return {name: value for name, value in found.items() if name not in names}


def made_anew(daemon: Daemon, container: str) -> tuple[Shown, Shown]:
    """The same with sizes, which is not kept, without them."""
    found = daemon.http("GET", f"/containers/{container}/json?size=1").json()
    entries = daemon.http("GET", "/containers/json?all=1&size=1").json()
    entry = next(entry for entry in entries if entry["Id"] == container)
    return without(found, "SizeRw", "SizeRootFs"), without(entry, "SizeRw", "SizeRootFs", "Status")


def looked_at(daemon: Daemon, container: str) -> tuple[Shown, Shown]:
    """Twice, so that the second answer is one that was kept."""
    first = inspect(daemon, container), listed(daemon, container)
    again = inspect(daemon, container), listed(daemon, container)
    assert (again[0], without(again[1], "Status")) == made_anew(daemon, container)
    assert (first[0], without(first[1], "Status")) == made_anew(daemon, container)
    return first


def done(daemon: Daemon, method: str, path: str, body: Any = None) -> Any:
    answer = daemon.http(method, path, body)
    assert answer.status < 300, answer.body
    return answer.json() if answer.body else None


CHANGES: dict[str, tuple[Callable[[Daemon, str], object], Callable[[Shown, Shown], bool]]] = {
    "pause": (
        lambda daemon, c: post(daemon, c, "pause"),
        lambda i, entry: i["State"]["Paused"] and entry["State"] == "paused" and "(Paused)" in entry["Status"],
    ),
    "kill": (
        lambda daemon, c: (post(daemon, c, "kill"), post(daemon, c, "wait")),
        lambda i, entry: i["State"]["ExitCode"] == 137 and entry["Status"].startswith("Exited (137)"),
    ),
    "stop": (
        lambda daemon, c: post(daemon, c, "stop?t=0"),
        lambda i, entry: not i["NetworkSettings"]["SandboxKey"] and entry["State"] == "exited",
    ),
    "rename": (
        lambda daemon, c: done(daemon, "POST", f"/containers/{c}/rename?name=renamed"),
        lambda i, entry: i["Name"] == "/renamed" and entry["Names"] == ["/renamed"],
    ),
    "update": (
        lambda daemon, c: done(daemon, "POST", f"/containers/{c}/update", {"RestartPolicy": {"Name": "always"}}),
        lambda i, entry: i["HostConfig"]["RestartPolicy"]["Name"] == "always",
    ),
    "exec": (
        lambda daemon, c: done(daemon, "POST", f"/containers/{c}/exec", {"Cmd": ["true"]}),
        lambda i, entry: len(i["ExecIDs"]) == 1,
    ),
    "link": (
        lambda daemon, c: create(daemon, name="friend", host={"Links": [f"{c}:pal"]}),
        lambda i, entry: "/friend/pal" in entry["Names"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_done_to_a_container_is_shown_at_once(daemon: Daemon, change: str):
    container = started(daemon)
    work, shows = CHANGES[change]
    before = looked_at(daemon, container)
    with contextlib.suppress(TypeError):  # what is to be counted is not there yet
        assert not shows(*before)
    work(daemon, container)
    assert shows(inspect(daemon, container), listed(daemon, container))
    looked_at(daemon, container)


def test_a_start_is_shown_at_once_and_so_are_its_addresses(daemon: Daemon):
    container = create(daemon)
    looked_at(daemon, container)
    post(daemon, container, "start")
    found, entry = inspect(daemon, container), listed(daemon, container)
    assert found["State"]["Running"] and found["State"]["Pid"] > 0
    assert entry["State"] == "running" and entry["Status"].startswith("Up ")
    address = found["NetworkSettings"]["Networks"]["bridge"]["IPAddress"]
    assert address and entry["NetworkSettings"]["Networks"]["bridge"]["IPAddress"] == address


def test_a_restart_is_shown_at_once(daemon: Daemon):
    container = started(daemon)
    before, _ = looked_at(daemon, container)
    post(daemon, container, "restart?t=0")
    found, _ = looked_at(daemon, container)
    assert found["State"]["Pid"] != before["State"]["Pid"]
    assert found["State"]["StartedAt"] > before["State"]["StartedAt"]


def test_networks_that_a_container_joins_and_leaves_are_shown_at_once(daemon: Daemon):
    container = started(daemon)
    done(daemon, "POST", "/networks/create", {"Name": "shown-at-once"})
    looked_at(daemon, container)
    done(daemon, "POST", "/networks/shown-at-once/connect", {"Container": container})
    for found in looked_at(daemon, container):
        assert found["NetworkSettings"]["Networks"]["shown-at-once"]["IPAddress"]
    done(daemon, "POST", "/networks/shown-at-once/disconnect", {"Container": container})
    for found in looked_at(daemon, container):
        assert list(found["NetworkSettings"]["Networks"]) == ["bridge"]
    done(daemon, "DELETE", "/networks/shown-at-once")


def test_health_is_shown_when_it_has_changed(daemon: Daemon):
    check = {
        "Test": ["CMD", "test", "-e", "/tmp/well"],
        "Interval": 50_000_000,
        "Retries": 1,
        "StartInterval": 50_000_000,
    }
    container = started(daemon, Healthcheck=check)

    def says(status: str) -> bool:
        # The list is asked for all the time: it must not stand still.
        entry = listed(daemon, container)
        return f"({status})" in entry["Status"] and inspect(daemon, container)["State"]["Health"]["Status"] == status

    until(lambda: says("unhealthy"), "it is unhealthy")
    made = done(daemon, "POST", f"/containers/{container}/exec", {"Cmd": ["touch", "/tmp/well"]})
    daemon.http("POST", f"/exec/{made['Id']}/start", {"Detach": True})
    until(lambda: says("healthy"), "it is healthy")


def test_an_exec_that_has_ended_is_shown_no_more(daemon: Daemon):
    container = started(daemon)
    made = done(daemon, "POST", f"/containers/{container}/exec", {"Cmd": ["true"]})
    assert looked_at(daemon, container)[0]["ExecIDs"] == [made["Id"]]
    daemon.http("POST", f"/exec/{made['Id']}/start", {"Detach": True})
    until(lambda: inspect(daemon, container)["ExecIDs"] is None, "the exec has ended")


def test_a_container_that_ends_by_itself_is_shown_so(daemon: Daemon):
    container = started(daemon, "sh", "-c", "sleep 0.3; exit 3")
    looked_at(daemon, container)
    post(daemon, container, "wait")
    found, entry = looked_at(daemon, container)
    assert (found["State"]["ExitCode"], entry["State"]) == (3, "exited")


def test_a_container_that_is_gone_is_shown_no_more(daemon: Daemon):
    container = create(daemon, name="gone-soon")
    looked_at(daemon, container)
    done(daemon, "DELETE", f"/containers/{container}")
    assert daemon.http("GET", f"/containers/{container}/json").status == 404
    assert daemon.http("GET", "/containers/gone-soon/json").status == 404
    assert listed(daemon, container) == {}
    again = create(daemon, name="gone-soon")
    assert inspect(daemon, "gone-soon")["Id"] == again
    assert listed(daemon, again)["Names"] == ["/gone-soon"]


def test_names_of_images_are_shown_at_once(daemon: Daemon):
    def tags(answer: Shown) -> list[str]:
        return sorted(answer["RepoTags"])

    def shown() -> list[list[str]]:
        busybox = done(daemon, "GET", "/images/busybox/json")
        entry = next(i for i in done(daemon, "GET", "/images/json") if i["Id"] == busybox["Id"])
        return [tags(busybox), tags(entry)]

    container = create(daemon, Image="busybox:latest")
    before = shown()
    assert shown() == before
    done(daemon, "POST", "/images/busybox/tag?repo=another&tag=1")
    assert shown() == [sorted([*before[0], "another:1"])] * 2
    assert shown() == [sorted([*before[0], "another:1"])] * 2
    assert done(daemon, "GET", "/images/another:1/json")["Id"] == listed(daemon, container)["ImageID"]
    moved = create(daemon, Image="another:1")
    assert listed(daemon, moved)["Image"] == "another:1"
    done(daemon, "DELETE", "/images/another:1")
    assert shown() == before
    assert daemon.http("GET", "/images/another:1/json").status == 404
    # Its name means nothing any more: the list shows the image's id.
    assert listed(daemon, moved)["Image"] == listed(daemon, moved)["ImageID"]


def test_images_that_are_made_and_removed_are_shown_at_once(daemon: Daemon):
    container = create(daemon)
    done(daemon, "GET", "/images/json")
    made = done(daemon, "POST", f"/commit?container={container}&repo=made&tag=here")["Id"]
    assert made in [entry["Id"] for entry in done(daemon, "GET", "/images/json")]
    assert done(daemon, "GET", "/images/made:here/json")["Id"] == made
    archive = daemon.http("GET", "/images/made:here/get").body
    done(daemon, "DELETE", "/images/made:here")
    assert made not in [entry["Id"] for entry in done(daemon, "GET", "/images/json")]
    assert daemon.http("GET", f"/images/{made}/json").status == 404
    loaded = daemon.http("POST", "/images/load", archive, headers={"Content-Type": "application/x-tar"})
    assert loaded.status == 200
    assert made in [entry["Id"] for entry in done(daemon, "GET", "/images/json")]
    done(daemon, "DELETE", "/images/made:here")
