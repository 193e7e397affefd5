"""The swarm of one that an engine can be, and its node."""

import contextlib
import json
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.support.daemon import Daemon
from tests.support.swarm import Swarm
from tests.support.waiting import until


def node(daemon: Daemon) -> dict[str, Any]:
    return json.loads(daemon.docker("node", "inspect", "self").stdout)[0]


def info(daemon: Daemon) -> dict[str, Any]:
    return daemon.http("GET", "/info").json()["Swarm"]


def test_an_engine_is_no_swarm_until_it_is_told(fresh_daemon: Daemon) -> None:
    assert info(fresh_daemon)["LocalNodeState"] == "inactive"
    for command in (
        ("service", "ls"),
        ("node", "ls"),
        ("service", "create", "busybox"),
        ("swarm", "join-token", "worker"),
    ):
        refused = fresh_daemon.docker(*command, check=False)
        assert "This node is not a swarm manager" in refused.stderr
    assert "This node is not part of a swarm" in fresh_daemon.docker("swarm", "leave", check=False).stderr
    assert fresh_daemon.http("GET", "/swarm").status == 503
    assert fresh_daemon.http("GET", "/tasks").status == 503


def test_init_and_leave(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    said = daemon.docker("swarm", "init", "--advertise-addr", "192.0.2.7").stdout
    assert "is now a manager" in said and "192.0.2.7:2377" in said
    again = daemon.docker("swarm", "init", "--advertise-addr", "nowhere", check=False)
    assert "This node is already part of a swarm" in again.stderr
    shown = info(daemon)
    assert (shown["LocalNodeState"], shown["ControlAvailable"], shown["Nodes"], shown["Managers"]) == (
        "active",
        True,
        1,
        1,
    )
    assert shown["NodeID"] == node(daemon)["ID"] and shown["NodeAddr"] == "192.0.2.7"
    assert "Swarm: active" in daemon.docker("info").stdout
    swarm = Swarm(daemon)
    swarm.create("web", "--replicas", "2")
    swarm.settles("web", 2)
    refused = daemon.docker("swarm", "leave", check=False)
    assert "Use `--force` to ignore this message" in refused.stderr
    daemon.restart()
    assert info(daemon)["LocalNodeState"] == "active"
    daemon.docker("swarm", "leave", "--force")
    assert not daemon.docker("ps", "-aq").stdout, "services are gone with the swarm"
    assert info(daemon)["LocalNodeState"] == "inactive"
    daemon.docker("swarm", "init")
    assert daemon.http("GET", "/services").json() == []
    daemon.docker("swarm", "leave", "--force")


def test_tokens_and_settings(swarm: Swarm) -> None:
    daemon = swarm.daemon
    worker, manager = (
        daemon.docker("swarm", "join-token", "-q", role).stdout.strip() for role in ("worker", "manager")
    )
    assert worker.startswith("SWMTKN-1-") and worker != manager
    assert daemon.docker("swarm", "join-token", "-q", "--rotate", "worker").stdout.strip() != worker
    assert daemon.docker("swarm", "join-token", "-q", "manager").stdout.strip() == manager
    daemon.docker("swarm", "update", "--task-history-limit", "2", "--autolock")
    settings = daemon.http("GET", "/swarm").json()["Spec"]
    assert settings["Orchestration"]["TaskHistoryRetentionLimit"] == 2
    assert daemon.docker("swarm", "unlock-key", "-q").stdout.startswith("SWMKEY-1-")
    daemon.docker("swarm", "update", "--task-history-limit", "5", "--autolock=false")
    stale = daemon.http("POST", "/swarm/update?version=1", settings)
    assert stale.status == 400 or "update out of sequence" in stale.message
    joined = daemon.docker("swarm", "join", "--token", worker, "192.0.2.1:2377", check=False)
    assert joined.returncode != 0 and "already part of a swarm" in joined.stderr
    assert daemon.http("POST", "/swarm/join", {"RemoteAddrs": ["192.0.2.1:2377"]}).status == 503
    assert daemon.http("POST", "/swarm/init", {}).status == 503


def test_node(swarm: Swarm) -> None:
    daemon = swarm.daemon
    shown = node(daemon)
    assert shown["Status"]["State"] == "ready" and shown["ManagerStatus"]["Leader"]
    assert shown["Description"]["Resources"]["NanoCPUs"] > 0
    hostname = shown["Description"]["Hostname"]
    assert hostname in daemon.docker("node", "ls").stdout
    daemon.docker("node", "update", "--label-add", "disk=ssd", hostname)
    assert node(daemon)["Spec"]["Labels"] == {"disk": "ssd"}
    assert daemon.docker("node", "ls", "-q", "--filter", "node.label=disk=ssd").stdout
    assert not daemon.docker("node", "ls", "-q", "--filter", "node.label=disk=hdd").stdout
    daemon.docker("node", "update", "--label-rm", "disk", hostname)
    stale = daemon.http("POST", f"/nodes/{shown['ID']}/update?version={shown['Version']['Index']}", shown["Spec"])
    assert "update out of sequence" in stale.message
    assert daemon.docker("node", "demote", hostname, check=False).returncode != 0
    assert daemon.docker("node", "rm", "-f", hostname, check=False).returncode != 0
    assert daemon.http("GET", "/nodes/nobody").status == 404


def test_a_drained_node_gives_up_its_tasks_and_gets_them_back(swarm: Swarm) -> None:
    daemon = swarm.daemon
    swarm.create("web", "--replicas", "2")
    swarm.create("everywhere", "--mode", "global")
    before = swarm.settles("web", 2)
    swarm.settles("everywhere", 1)
    daemon.docker("node", "update", "--availability", "drain", "self")
    try:
        until(lambda: not swarm.containers("web") and not swarm.containers("everywhere"), "all tasks end")
        ended = ("--filter", "desired-state=shutdown")
        until(lambda: all("Shutdown" in line["CurrentState"] for line in swarm.ps("web", *ended)), "that is seen")
        until(
            lambda: sum("no suitable node" in task["Status"].get("Err", "") for task in swarm.tasks("web")) == 2,
            "they wait",
        )
        assert swarm.states("web").count("pending") == 2
    finally:
        daemon.docker("node", "update", "--availability", "active", "self")
    assert not set(swarm.settles("web", 2)) & set(before)
    swarm.settles("everywhere", 1)


def test_a_paused_node_keeps_its_tasks_and_gets_no_others(swarm: Swarm) -> None:
    daemon = swarm.daemon
    swarm.create("old")
    kept = swarm.settles("old", 1)
    daemon.docker("node", "update", "--availability", "pause", "self")
    try:
        swarm.create("new")
        until(lambda: swarm.states("new") == ["pending"], "it waits")
        assert swarm.settles("old", 1) == kept
    finally:
        daemon.docker("node", "update", "--availability", "active", "self")
    swarm.settles("new", 1)


def test_a_node_that_changes_tells(swarm: Swarm) -> None:
    daemon = swarm.daemon
    since = str(time.time())
    daemon.docker("node", "update", "--availability", "pause", "self")
    daemon.docker("node", "update", "--availability", "active", "self")
    shown = daemon.docker("events", "--since", since, "--until", str(time.time() + 0.1), "--filter", "type=node").stdout
    assert shown.count("node update") == 2
    assert "availability.new=pause" in shown and "availability.old=pause" in shown


def test_what_one_host_has_no_use_for(swarm: Swarm) -> None:
    daemon = swarm.daemon
    before = daemon.http("GET", "/swarm").json()
    node_id = daemon.http("GET", "/info").json()["Swarm"]["NodeID"]
    forced = daemon.http("POST", "/swarm/init", {"ListenAddr": "0.0.0.0:2377", "ForceNewCluster": True})
    assert forced.json() == node_id and daemon.http("GET", "/swarm").json() == before


def test_the_log_driver_of_the_swarm(swarm: Swarm) -> None:
    daemon = swarm.daemon
    shown = daemon.http("GET", "/swarm").json()
    spec = {**shown["Spec"], "TaskDefaults": {"LogDriver": {"Name": "none"}}}
    assert daemon.http("POST", f"/swarm/update?version={shown['Version']['Index']}", spec).status == 200
    swarm.create("quiet")
    swarm.create("own", "--log-driver", "local")
    drivers = []
    for name in ("quiet", "own"):
        [container] = swarm.settles(name, 1)
        drivers.append(daemon.http("GET", f"/containers/{container}/json").json()["HostConfig"]["LogConfig"]["Type"])
    assert drivers == ["none", "local"]
    shown = daemon.http("GET", "/swarm").json()
    spec["TaskDefaults"] = {}
    assert daemon.http("POST", f"/swarm/update?version={shown['Version']['Index']}", spec).status == 200


def test_two_that_change_a_service_at_once(swarm: Swarm) -> None:
    """One of them is told that it came too late; and of two of one name, one is made."""
    daemon = swarm.daemon
    container = {"Image": "busybox", "Command": ["sleep", "600"], "StopGracePeriod": 0}
    body = {"Name": "web", "TaskTemplate": {"ContainerSpec": container}}
    with ThreadPoolExecutor() as pool:
        made = list(pool.map(lambda _: daemon.http("POST", "/services/create", body).status, range(4)))
    assert sorted(made) == [201, 409, 409, 409]
    swarm.settles("web", 1)
    shown = swarm.inspect("web")
    path = f"/services/web/update?version={shown['Version']['Index']}"
    specs = [{**shown["Spec"], "Labels": {"n": str(number)}} for number in range(4)]
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda spec: daemon.http("POST", path, spec), specs))
    assert sorted(answer.status for answer in answers) == [200, 400, 400, 400]
    assert all("update out of sequence" in answer.message for answer in answers if answer.status == 400)


def test_a_daemon_that_dies_while_it_leaves(fresh_daemon: Daemon) -> None:
    """The swarm's own record goes first: the next daemon finishes the rest."""
    daemon = fresh_daemon
    daemon.docker("swarm", "init")
    swarm = Swarm(daemon)
    daemon.docker("network", "create", "-d", "overlay", "mesh")
    daemon.docker("secret", "create", "key", "-", input="x")
    swarm.create("web", "--network", "mesh", "--secret", "key")
    swarm.settles("web", 1)
    daemon.kill9()
    with contextlib.closing(sqlite3.connect(daemon.config.data_root / "state.db")) as state, state:
        state.execute("DELETE FROM document WHERE kind = 'swarm'")
    daemon.start()
    assert not daemon.docker("ps", "-aq").stdout
    assert "overlay" not in daemon.docker("network", "ls").stdout
    assert not list(daemon.config.data_root.glob("swarm.*"))
    daemon.docker("swarm", "init")
    assert daemon.http("GET", "/services").json() == daemon.http("GET", "/secrets").json() == []
    daemon.docker("swarm", "leave", "--force")


def test_the_port_between_hosts_is_kept_and_shown_or_refused(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    for wrong in (80, 65000):
        answer = daemon.http("POST", "/swarm/init", {"DataPathPort": wrong})
        assert answer.status == 400
        assert answer.message == f"Datapath port number is not in valid range (1024-49151) : {wrong}"
    assert info(daemon)["LocalNodeState"] == "inactive"
    daemon.docker("swarm", "init", "--data-path-port", "5789")
    assert daemon.http("GET", "/swarm").json()["DataPathPort"] == 5789
    daemon.restart()
    assert info(daemon)["Cluster"]["DataPathPort"] == 5789
    daemon.docker("swarm", "leave", "--force")


def test_a_new_swarm_has_all_settings_and_an_update_says_all_of_them(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    external = ("--external-ca", "protocol=cfssl,url=https://192.0.2.1/sign,a=b")
    refused = daemon.docker("swarm", "init", *external, check=False)
    assert "external CAs of a swarm are not implemented by Husk yet" in refused.stderr
    daemon.docker("swarm", "init")
    shown = daemon.http("GET", "/swarm").json()
    assert shown["Spec"] == {
        "Name": "default",
        "Labels": {},
        "Orchestration": {"TaskHistoryRetentionLimit": 5},
        "Raft": {
            "SnapshotInterval": 10000,
            "KeepOldSnapshots": 0,
            "LogEntriesForSlowFollowers": 500,
            "ElectionTick": 10,
            "HeartbeatTick": 1,
        },
        "Dispatcher": {"HeartbeatPeriod": 5 * 10**9},
        "CAConfig": {"NodeCertExpiry": 90 * 86400 * 10**9},
        "TaskDefaults": {},
        "EncryptionConfig": {"AutoLockManagers": False},
    }
    path = f"/swarm/update?version={shown['Version']['Index']}"
    for spec, said in (
        ({"CAConfig": {"ExternalCAs": [{"Protocol": "other", "URL": "x"}]}}, 'invalid protocol: "other"'),
        ({"CAConfig": {"NodeCertExpiry": 1}}, "minimum certificate expiry time is: 1h0m0s"),
        ({"Dispatcher": {"HeartbeatPeriod": -1}}, "heartbeat time period cannot be a negative duration"),
        ({"Name": "other"}, 'swarm spec must be named "default"'),
    ):
        answer = daemon.http("POST", path, spec)
        assert answer.status == 400 and said in answer.message
    assert daemon.http("GET", "/swarm").json() == shown, "nothing has changed"
    assert daemon.http("POST", path, {"Labels": {"a": "b"}}).status == 200
    changed = daemon.http("GET", "/swarm").json()["Spec"]
    assert (changed["Labels"], changed["CAConfig"], changed["Orchestration"]) == (
        {"a": "b"},
        {},
        {"TaskHistoryRetentionLimit": 0},
    )
    daemon.docker("swarm", "leave", "--force")
