"""Volumes by themselves: make, look at, filter, remove, prune; as the docker command, the SDK and the API do it."""

import contextlib
import json
import re
import time
from typing import Any
from urllib.parse import urlencode

import pytest
from docker.errors import APIError, NotFound

from tests.integration.volumes.helpers import create, data, run, volumes
from tests.support.daemon import Answer, Daemon

HEX = re.compile(r"[0-9a-f]{64}")


def post(daemon: Daemon, body: object) -> Answer:
    return daemon.http("POST", "/volumes/create", body)


def filtered(daemon: Daemon, **filters: list[str]) -> set[str]:
    answer = daemon.http("GET", "/volumes?" + urlencode({"filters": json.dumps(filters)}))
    assert answer.status == 200, answer.message
    return {volume["Name"] for volume in answer.json()["Volumes"]}


def events(daemon: Daemon, since: float) -> list[tuple[str, str, dict[str, str]]]:
    query = urlencode({"since": since, "until": time.time(), "filters": json.dumps({"type": ["volume"]})})
    lines = daemon.http("GET", f"/events?{query}").body.splitlines()
    return [(e["Action"], e["Actor"]["ID"], e["Actor"]["Attributes"]) for e in map(json.loads, lines)]


def test_a_volume_is_made_and_shown_as_docker_shows_it(daemon: Daemon) -> None:
    answer = post(daemon, {"Name": "one"})
    assert answer.status == 201
    shown = answer.json()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", shown.pop("CreatedAt"))
    place = data(daemon, "one")
    assert shown == {
        "Name": "one", "Driver": "local", "Mountpoint": str(place), "Labels": None, "Options": None, "Scope": "local",
    }  # fmt: skip
    assert (place.stat().st_mode & 0o7777, place.parent.stat().st_mode & 0o7777) == (0o755, 0o701)
    daemon.docker("volume", "create", "--label", "a=b", "-o", "type=tmpfs", "-o", "device=tmpfs", "two")
    (two,) = json.loads(daemon.docker("volume", "inspect", "two").stdout)
    assert (two["Labels"], two["Options"]) == ({"a": "b"}, {"type": "tmpfs", "device": "tmpfs"})


def test_without_a_name_it_gets_one_and_a_label(daemon: Daemon) -> None:
    shown = post(daemon, {}).json()
    assert HEX.fullmatch(shown["Name"])
    assert shown["Labels"] == {"com.docker.volume.anonymous": ""}


def test_the_same_name_means_the_same_volume(daemon: Daemon) -> None:
    first = post(daemon, {"Name": "same", "Labels": {"a": "b"}})
    assert post(daemon, {"Name": "same", "Labels": {"c": "d"}, "Driver": "local"}).json() == first.json()


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"Name": "a"}, 400,
         "create a: volume name is too short, names should be at least two alphanumeric characters"),
        ({"Name": "../x"}, 400, 'create ../x: "../x" includes invalid characters for a local volume name, only '
         '"[a-zA-Z0-9][a-zA-Z0-9_.-]" are allowed. If you intended to pass a host directory, use absolute path'),
        ({"Name": ".trash"}, 400, 'create .trash: ".trash" includes invalid characters'),
        ({"Name": "v" * 256}, 400, "create vvv"),
        ({"Name": "vv", "Driver": "foo"}, 404, 'create vv: error looking up volume plugin foo: plugin "foo" not found'),
        ({"Name": "vv", "DriverOpts": {"x": "y"}}, 400, 'create vv: invalid option: "x"'),
        ({"Name": "vv", "DriverOpts": {"type": "y"}}, 400, 'create vv: missing required option: "device"'),
        ({"Name": "vv", "DriverOpts": {"size": "5m"}}, 400, "create vv: quota size requested but no quota support"),
        ({"Name": "vv", "ClusterVolumeSpec": {}}, 501, "cluster volumes"),
        (None, 400, "invalid JSON: got EOF while reading request body"),
        ({"Name": 5}, 400, "invalid JSON"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_refused(daemon: Daemon, body: Any, status: int, message: str) -> None:
    answer = post(daemon, body)
    assert (answer.status, answer.message[: len(message)]) == (status, message)
    assert volumes(daemon) == set()


def test_what_is_not_there(daemon: Daemon) -> None:
    for method in ("GET", "DELETE"):
        answer = daemon.http(method, "/volumes/nope")
        assert answer.status == 404 and answer.message.endswith(": no such volume")
    assert daemon.http("GET", "/volumes/..%2f..").status == 301, "as dockerd: that is another path"
    assert daemon.http("DELETE", "/volumes/nope?force=1").status == 204


def test_filters(daemon: Daemon) -> None:
    for name, labels in (("first", {"a": "1"}), ("second", {"a": "2", "b": ""}), ("third", None)):
        post(daemon, {"Name": name, "Labels": labels})
    create(daemon, "-v", "third:/x", "busybox", "true")
    everything = {"first", "second", "third"}
    assert filtered(daemon) == everything
    assert filtered(daemon, name=["ir"]) == {"first", "third"}
    assert filtered(daemon, name=["first", "seco"]) == {"first", "second"}
    assert filtered(daemon, label=["a"]) == {"first", "second"}
    assert filtered(daemon, label=["a=2"]) == {"second"}
    assert filtered(daemon, label=["a", "b"]) == {"second"}
    assert filtered(daemon, driver=["local"]) == everything
    assert filtered(daemon, driver=["foo"]) == set()
    assert filtered(daemon, dangling=["true"]) == {"first", "second"}
    assert filtered(daemon, dangling=["0"]) == {"third"}
    for wrong in ({"dangling": ["maybe"]}, {"foo": ["x"]}):
        answer = daemon.http("GET", "/volumes?" + urlencode({"filters": json.dumps(wrong)}))
        assert answer.status == 400
    assert daemon.docker("ps", "-aq", "-f", "volume=third").stdout.strip()
    assert not daemon.docker("ps", "-aq", "-f", "volume=first").stdout.strip()


def test_a_volume_in_use_stays(daemon: Daemon) -> None:
    container = create(daemon, "-v", "used:/x", "busybox", "true")
    for query in ("", "?force=1"):
        answer = daemon.http("DELETE", "/volumes/used" + query)
        assert (answer.status, answer.message) == (409, f"remove used: volume is in use - [{container}]")
    daemon.docker("rm", "-v", container)
    assert daemon.docker("volume", "rm", "used").stdout == "used\n"
    assert not data(daemon, "used").parent.exists()


def test_prune_takes_the_unnamed_ones_or_all(daemon: Daemon) -> None:
    unnamed = post(daemon, {}).json()["Name"]
    post(daemon, {"Name": "named"})
    post(daemon, {"Name": "kept", "Labels": {"keep": ""}})
    (data(daemon, "named") / "f").write_bytes(bytes(1000))
    container = create(daemon, "-v", "used:/x", "busybox", "true")
    assert daemon.http("POST", "/volumes/prune").json() == {"VolumesDeleted": [unnamed], "SpaceReclaimed": 0}
    query = urlencode({"filters": json.dumps({"all": ["1"], "label!": ["keep"]})})
    pruned = daemon.http("POST", f"/volumes/prune?{query}").json()
    assert pruned == {"VolumesDeleted": ["named"], "SpaceReclaimed": 1000}
    daemon.docker("rm", container)
    # Before 1.42 names made no difference.
    assert set(daemon.http("POST", "/v1.41/volumes/prune").json()["VolumesDeleted"]) == {"kept", "used"}
    assert daemon.http("POST", "/volumes/prune?filters=" + '{"dangling":["true"]}').status == 400


def test_events_tell_of_a_volumes_life(daemon: Daemon) -> None:
    started = time.time()
    container = create(daemon, "-v", "told:/x:ro", "busybox", "true")
    daemon.docker("start", "-a", container)
    daemon.docker("rm", container)
    daemon.docker("volume", "rm", "told")
    daemon.docker("volume", "prune", "-f")
    local = {"driver": "local"}
    mounted = {**local, "container": container, "destination": "/x", "propagation": "", "read/write": "false"}
    assert events(daemon, started) == [
        ("create", "told", local),
        ("mount", "told", mounted),
        ("unmount", "told", {**local, "container": container}),
        ("destroy", "told", local),
        ("prune", "", {"reclaimed": "0"}),
    ]


def test_usage(daemon: Daemon) -> None:
    run(daemon, "-v", "measured:/x", "busybox", "sh", "-c", "head -c 5000 /dev/zero > /x/f; ln /x/f /x/g")
    create(daemon, "-v", "measured:/x", "busybox", "true")
    (shown,) = daemon.http("GET", "/v1.41/system/df").json()["Volumes"]
    assert (shown["Name"], shown["UsageData"]) == ("measured", {"Size": 5000, "RefCount": 1})
    sums = daemon.http("GET", "/v1.52/system/df?type=volume&verbose=1").json()["VolumeUsage"]
    assert (sums["ActiveCount"], sums["TotalCount"], sums["TotalSize"], sums["Reclaimable"]) == (1, 1, 5000, 0)
    assert "measured" in daemon.docker("system", "df", "-v").stdout


def test_the_sdk(daemon: Daemon) -> None:
    with contextlib.closing(daemon.sdk()) as client:
        volume = client.volumes.create("sdk", labels={"a": "b"})
        assert volume.attrs["Labels"] == {"a": "b"}
        assert [v.name for v in client.volumes.list(filters={"label": "a=b"})] == ["sdk"]
        output = client.containers.run(
            "busybox", ["sh", "-c", "echo hi > /x/f; cat /x/f"], remove=True, network_mode="none",
            volumes={"sdk": {"bind": "/x", "mode": "rw"}},
        )  # fmt: skip
        assert output == b"hi\n"
        container = client.containers.create("busybox", volumes=["sdk:/x"])
        with pytest.raises(APIError, match="volume is in use"):
            volume.remove()
        container.remove()
        volume.remove()
        with pytest.raises(NotFound):
            client.volumes.get("sdk")
