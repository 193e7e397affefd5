"""`docker ps` and `docker inspect`: which containers, in which order, in which shape."""

import json
import re
import urllib.parse
from typing import Any

import pytest

from tests.support.daemon import Answer, Daemon
from tests.support.waiting import until

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")


@pytest.fixture
def crowd(daemon: Daemon) -> None:
    """Five containers, oldest first: `made`, `gone` (exit 3), `frozen` (paused), `up` (running), `last` (created)."""
    daemon.docker("create", "--name", "made", "-l", "tier=web", "-l", "env=dev", "--expose", "80", "busybox", "true")
    daemon.docker("run", "--name", "gone", "-l", "tier=db", "busybox", "sh", "-c", "exit 3", check=False)
    daemon.docker("run", "-d", "--name", "frozen", "-v", "/tmp:/data", "--expose", "80", "busybox", "sleep", "1000")
    daemon.docker("pause", "frozen")
    daemon.docker("run", "-d", "--name", "up", "-l", "tier=web", "--net", "none", "busybox", "sleep", "1000")
    daemon.docker("create", "--name", "last", "--net", "host", "busybox", "true")


def names(daemon: Daemon, *arguments: str) -> list[str]:
    return daemon.docker("ps", "--format", "{{.Names}}", *arguments).stdout.split()


def list_http(daemon: Daemon, query: str = "", **filters: Any) -> Answer:
    encoded = urllib.parse.quote(json.dumps(filters)) if filters else ""
    return daemon.http("GET", f"/containers/json?{query}" + (f"&filters={encoded}" if encoded else ""))


def test_listings(daemon: Daemon, crowd: None):
    """One crowd, many questions: making it costs more than asking."""
    id_of = {c["Names"][0][1:]: c["Id"] for c in list_http(daemon, "all=1").json()}
    everybody = ["last", "up", "frozen", "gone", "made"]
    questions: dict[tuple[str, ...], list[str]] = {
        (): ["up", "frozen"],
        ("-a",): everybody,
        ("-n", "2"): ["last", "up"],
        ("-l",): ["last"],
        ("-n", "100"): everybody,
        ("-f", "status=running"): ["up"],
        ("-f", "status=paused"): ["frozen"],
        ("-f", "status=exited"): ["gone"],
        ("-f", "status=created"): ["last", "made"],
        ("-f", "status=created", "-f", "status=exited"): ["last", "gone", "made"],
        ("-a", "-f", "exited=3"): ["gone"],
        ("-a", "-f", "exited=0"): [],
        ("-a", "-f", "label=tier"): ["up", "gone", "made"],
        ("-a", "-f", "label=tier=web"): ["up", "made"],
        ("-a", "-f", "label=tier=web", "-f", "label=env=dev"): ["made"],
        ("-f", "label=tier=web"): ["up"],
        ("-a", "-f", "name=up"): ["up"],
        ("-a", "-f", "name=^/?(up|gone)$"): ["up", "gone"],
        ("-a", "-f", "name=e"): ["frozen", "gone", "made"],
        ("-a", "-f", f"id={id_of['gone'][:12]}"): ["gone"],
        ("-a", "-f", f"id={id_of['gone']}", "-f", f"id={id_of['up']}"): ["up", "gone"],
        ("-a", "-f", "before=frozen"): ["gone", "made"],
        ("-a", "-f", "since=frozen"): ["last", "up"],
        ("-a", "-f", "since=gone", "-f", "before=up"): ["frozen"],
        ("-a", "-f", "ancestor=busybox"): everybody,
        ("-a", "-f", "ancestor=busybox:latest"): everybody,
        ("-a", "-f", "ancestor=no-such-image"): [],
        ("-a", "-f", "network=none"): ["up"],
        ("-a", "-f", "network=host"): ["last"],
        ("-a", "-f", "network=bridge"): ["frozen", "gone", "made"],
        ("-a", "-f", "volume=/data"): ["frozen"],
        ("-a", "-f", "volume=/tmp"): ["frozen"],
        ("-a", "-f", "volume=other"): [],
        ("-a", "-f", "expose=80"): ["frozen"],  # not `made`, which is on no network
        ("-a", "-f", "expose=70-90/tcp"): ["frozen"],
        ("-a", "-f", "expose=80/udp"): [],
        ("-a", "-f", "publish=80"): [],
        ("-a", "-f", "is-task=false"): everybody,
        ("-a", "-f", "is-task=true"): [],
        ("-a", "-f", "health=none"): everybody,
        ("-a", "-f", "health=healthy"): [],
        ("-n", "1", "-f", "label=tier"): ["up"],
        ("-a", "-f", "status=exited", "-f", "label=tier=db", "-f", "exited=3"): ["gone"],
    }
    wrong = {q: found for q, expected in questions.items() if (found := names(daemon, *q)) != expected}
    assert wrong == {}
    image = daemon.docker("inspect", "-f", "{{.Image}}", "up").stdout.strip()
    assert names(daemon, "-a", "-f", f"ancestor={image}") == everybody
    _check_summaries(daemon)


def _check_summaries(daemon: Daemon) -> None:
    by_name = {c["Names"][0]: c for c in list_http(daemon, "all=1").json()}
    up, gone, frozen = by_name["/up"], by_name["/gone"], by_name["/frozen"]
    assert set(up) >= {
        "Id", "Names", "Image", "ImageID", "Command", "Created", "Ports", "Labels", "State", "Status", "HostConfig",
        "NetworkSettings", "Mounts",
    }  # fmt: skip
    assert (up["Image"], up["Command"], up["State"], up["Ports"]) == ("busybox", "sleep 1000", "running", [])
    assert up["ImageID"].startswith("sha256:") and isinstance(up["Created"], int)
    assert (up["HostConfig"], up["Labels"]) == ({"NetworkMode": "none"}, {"tier": "web"})
    assert re.fullmatch("Up (Less than a second|About a minute|.* seconds?)", up["Status"])
    assert frozen["Status"].endswith("(Paused)") and gone["Status"].startswith("Exited (3) ")
    assert by_name["/made"]["Status"] == "Created"
    assert gone["Command"] == "sh -c 'exit 3'"
    assert frozen["Mounts"] == [
        {"Type": "bind", "Source": "/tmp", "Destination": "/data", "Mode": "", "RW": True, "Propagation": "rprivate"}
    ]
    assert frozen["NetworkSettings"]["Networks"]["bridge"]["IPAddress"] != ""
    assert "SizeRw" not in up


def test_sizes(daemon: Daemon):
    daemon.docker("run", "--name", "fat", "busybox", "dd", "if=/dev/zero", "of=/big", "bs=1k", "count=100")
    found = list_http(daemon, "all=1&size=1").json()[0]
    assert 100 * 1024 <= found["SizeRw"] < 200 * 1024 < found["SizeRootFs"]
    assert "MB" in daemon.docker("ps", "-as", "--format", "{{.Size}}").stdout
    inspected = json.loads(daemon.docker("inspect", "-s", "fat").stdout)[0]
    assert (inspected["SizeRw"], inspected["SizeRootFs"]) == (found["SizeRw"], found["SizeRootFs"])


@pytest.mark.parametrize(
    "filters",
    [
        {"nonsense": ["x"]},
        {"status": ["nonsense"]},
        {"exited": ["soon"]},
        {"health": ["nonsense"]},
        {"is-task": ["maybe"]},
        {"expose": ["http"]},
        {"status": "running"},
    ],
)
def test_wrong_filters_are_400(daemon: Daemon, filters: dict[str, Any]):
    assert list_http(daemon, **filters).status == 400


@pytest.mark.parametrize("reference", ["before", "since"])
def test_a_container_to_compare_with_must_exist(daemon: Daemon, reference: str):
    answer = list_http(daemon, "", **{reference: ["nobody"]})
    assert (answer.status, answer.message) == (404, "No such container: nobody")


@pytest.mark.parametrize("filters", ["{", "[]", '"x"', '{"label": 5}'])
def test_malformed_filters_are_400(daemon: Daemon, filters: str):
    answer = daemon.http("GET", "/containers/json?filters=" + urllib.parse.quote(filters))
    assert (answer.status, "message" in answer.json()) == (400, True)


def test_old_form_of_filters(daemon: Daemon):
    daemon.docker("create", "--name", "one", "-l", "a=b", "busybox")
    daemon.docker("create", "--name", "two", "busybox")
    assert [c["Names"] for c in list_http(daemon, "all=1", label={"a=b": True}).json()] == [["/one"]]


def test_no_containers_is_an_empty_list(daemon: Daemon):
    assert list_http(daemon, "all=1").body.strip() == b"[]"


def test_the_image_is_shown_by_its_id_once_its_name_has_gone(daemon: Daemon):
    daemon.docker("tag", "busybox", "alias:1")
    daemon.docker("create", "--name", "aliased", "alias:1")
    assert names(daemon, "-a", "--format", "{{.Image}}") == ["alias:1"]
    daemon.docker("rmi", "alias:1")
    shown = list_http(daemon, "all=1").json()[0]
    assert shown["Image"] == shown["ImageID"]


# --- inspect


def test_inspect_of_a_running_container(daemon: Daemon):
    daemon.docker(
        "run", "-d", "--name", "full", "-e", "A=1", "-l", "k=v", "-m", "64m", "--hostname", "box", "-w", "/tmp",
        "-u", "33", "--restart", "on-failure:3", "-v", "/tmp:/data:ro", "busybox", "sleep", "1000",
    )  # fmt: skip
    found = json.loads(daemon.docker("inspect", "full").stdout)[0]
    assert set(found) >= {
        "Id", "Created", "Path", "Args", "State", "Image", "ResolvConfPath", "HostnamePath", "HostsPath", "LogPath",
        "Name", "RestartCount", "Driver", "Platform", "MountLabel", "ProcessLabel", "AppArmorProfile", "ExecIDs",
        "HostConfig", "GraphDriver", "Mounts", "Config", "NetworkSettings",
    }  # fmt: skip
    assert (found["Name"], found["Path"], found["Args"], found["Platform"]) == ("/full", "sleep", ["1000"], "linux")
    assert RFC3339.fullmatch(found["Created"])
    state = found["State"]
    assert set(state) >= {
        "Status", "Running", "Paused", "Restarting", "OOMKilled", "Dead", "Pid", "ExitCode", "Error", "StartedAt",
        "FinishedAt",
    }  # fmt: skip
    assert (state["Status"], state["Running"], state["Dead"], state["Error"]) == ("running", True, False, "")
    assert state["Pid"] > 1 and RFC3339.fullmatch(state["StartedAt"])
    config = found["Config"]
    assert (config["Image"], config["User"], config["WorkingDir"], config["Hostname"]) == (
        "busybox",
        "33",
        "/tmp",
        "box",
    )
    assert "A=1" in config["Env"] and config["Labels"] == {"k": "v"} and config["Cmd"] == ["sleep", "1000"]
    host = found["HostConfig"]
    assert (host["Memory"], host["MemorySwap"], host["NetworkMode"]) == (64 << 20, 128 << 20, "bridge")
    assert host["RestartPolicy"] == {"Name": "on-failure", "MaximumRetryCount": 3}
    assert host["Binds"] == ["/tmp:/data:ro"]
    assert found["Mounts"][0]["RW"] is False and found["Mounts"][0]["Mode"] == "ro"
    network = found["NetworkSettings"]["Networks"]["bridge"]
    assert network["Gateway"] == daemon.config.bip.partition("/")[0] and network["IPPrefixLen"] == 24
    assert re.fullmatch("([0-9a-f]{2}:){5}[0-9a-f]{2}", network["MacAddress"])
    assert found["NetworkSettings"]["SandboxKey"] != ""


def test_inspect_through_the_years(daemon: Daemon):
    """Fields that newer versions of the API dropped are there for those who speak the old ones; the address and the
    gateway for all, since tools read them in any version."""
    daemon.docker("run", "-d", "--name", "aged", "busybox", "sleep", "1000")
    old = daemon.http("GET", "/v1.43/containers/aged/json").json()["NetworkSettings"]
    assert old["IPAddress"] == old["Networks"]["bridge"]["IPAddress"] != ""
    new = daemon.http("GET", "/v1.52/containers/aged/json").json()["NetworkSettings"]
    assert (new["IPAddress"], new["Gateway"]) == (old["IPAddress"], old["Gateway"])
    assert "HairpinMode" in old and "HairpinMode" not in new


def test_addresses_are_gone_after_the_exit(daemon: Daemon):
    daemon.docker("run", "--name", "done", "busybox", "true")
    until(lambda: _address(daemon) == "", "the address is given back")


def _address(daemon: Daemon) -> str:
    found = daemon.http("GET", "/containers/done/json").json()["NetworkSettings"]["Networks"]["bridge"]["IPAddress"]
    return str(found)


def test_names_of_a_container_that_is_put_on_a_network_before_it_runs(daemon: Daemon):
    daemon.docker("network", "create", "home")
    try:
        short = daemon.docker("create", "--name", "box", "busybox", "sleep", "99").stdout[:12]
        daemon.docker("network", "connect", "--alias", "alias", "home", "box")
        daemon.restart()
        networks = daemon.http("GET", "/containers/box/json").json()["NetworkSettings"]["Networks"]
        assert (networks["home"]["DNSNames"], networks["bridge"]["DNSNames"]) == (["box", "alias", short], None)
    finally:
        daemon.docker("rm", "-f", "box")
        daemon.docker("network", "rm", "home")


def test_names_on_a_network(daemon: Daemon):
    def endpoint(path: str = "") -> dict[str, Any]:
        found = daemon.http("GET", f"{path}/containers/box/json").json()["NetworkSettings"]["Networks"]["home"]
        return dict(found)

    daemon.docker("network", "create", "home")
    try:
        made = daemon.docker(
            "create", "--name", "box", "--net", "home", "--net-alias", "alias", "busybox", "sleep", "99"
        )
        short = made.stdout[:12]
        assert endpoint()["DNSNames"] is None
        daemon.docker("start", "box")
        assert endpoint()["DNSNames"] == ["box", "alias", short]
        assert endpoint()["Aliases"] == endpoint("/v1.45")["Aliases"] == ["alias"]
        assert endpoint("/v1.44")["Aliases"] == ["alias", short], "older clients look for the id there"
        listed = list_http(daemon).json()[0]["NetworkSettings"]["Networks"]["home"]
        assert (listed["Aliases"], listed["DNSNames"], listed["NetworkID"]) == (None, None, endpoint()["NetworkID"])
        daemon.docker("kill", "box")
        assert endpoint()["DNSNames"] == ["box", "alias", short]
    finally:
        daemon.docker("rm", "-f", "box")
        daemon.docker("network", "rm", "home")
