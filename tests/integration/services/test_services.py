"""Services as the docker client makes, shows, changes and removes them."""

import base64
import json
import subprocess
import time

from tests.support.free_ports import free_port
from tests.support.swarm import FOREVER, QUICK, Swarm
from tests.support.waiting import until


def test_create_waits_for_its_tasks_and_ls_shows_them(swarm: Swarm) -> None:
    daemon = swarm.daemon
    said = daemon.docker("service", "create", "--name", "web", "--replicas", "2", *QUICK, "busybox", *FOREVER).stdout
    assert "converged" in said
    [line] = [json.loads(text) for text in daemon.docker("service", "ls", "--format", "json").stdout.splitlines()]
    assert (line["Name"], line["Mode"], line["Replicas"], line["Image"]) == (
        "web",
        "replicated",
        "2/2",
        "busybox:latest",
    )
    unnamed = daemon.docker("service", "create", "-d", *QUICK, "busybox", *FOREVER).stdout.strip()
    assert "_" in swarm.inspect(unnamed)["Spec"]["Name"]
    names = {task["Name"] for task in swarm.ps("web")}
    assert names == {"web.1", "web.2"}
    shown = json.loads(daemon.docker("service", "inspect", "web").stdout)[0]
    assert shown["Spec"]["TaskTemplate"]["RestartPolicy"]["Condition"] == "any", "defaults are written out"
    assert "busybox:latest" in daemon.docker("service", "inspect", "--pretty", "web").stdout
    container = daemon.http("GET", f"/containers/{swarm.containers('web')[0]}/json").json()
    assert container["Name"].startswith("/web.")
    labels = container["Config"]["Labels"]
    assert labels["com.docker.swarm.service.id"] == shown["ID"]
    assert labels["com.docker.swarm.task.id"] in container["Name"]


def test_scale_up_and_down(swarm: Swarm) -> None:
    daemon = swarm.daemon
    swarm.create("web")
    first = swarm.settles("web", 1)
    assert "converged" in daemon.docker("service", "scale", "web=4").stdout
    assert set(first) < set(swarm.settles("web", 4))
    daemon.docker("service", "scale", "-d", "web=2")
    swarm.settles("web", 2)
    until(lambda: len(swarm.tasks("web")) == 2, "tasks of slots that are gone are forgotten")
    daemon.docker("service", "scale", "-d", "web=0")
    until(lambda: not swarm.containers("web", all=True), "none is wanted")
    assert swarm.inspect("web")["Spec"]["Mode"]["Replicated"]["Replicas"] == 0


def test_removal_stops_gracefully(swarm: Swarm) -> None:
    daemon = swarm.daemon
    script = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    swarm.create("web", "--stop-grace-period", "10s", args=["sh", "-c", script])
    [container] = swarm.settles("web", 1)
    with daemon.docker_process("logs", "-f", container, stderr=subprocess.DEVNULL) as log:
        assert log.stdout is not None and log.stdout.readline() == b"ready\n", "its trap is set, and somebody follows"
        daemon.docker("service", "rm", "web")
        assert log.stdout.read() == b"bye\n"
    until(lambda: not swarm.containers("web", all=True), "its containers go")
    assert "no such service" in daemon.docker("service", "inspect", "web", check=False).stderr.lower()


def test_names_versions_and_other_mistakes(swarm: Swarm) -> None:
    daemon = swarm.daemon
    swarm.create("web")
    conflict = daemon.docker("service", "create", "-d", "--name", "web", "busybox", check=False)
    assert "name conflicts with an existing object" in conflict.stderr
    spec = swarm.inspect("web")["Spec"]
    stale = daemon.http("POST", "/services/web/update?version=1", spec)
    assert "update out of sequence" in stale.message
    version = swarm.inspect("web")["Version"]["Index"]
    renamed = daemon.http("POST", f"/services/web/update?version={version}", {**spec, "Name": "other"})
    assert "renaming services is not supported" in renamed.message
    changed = daemon.http("POST", f"/services/web/update?version={version}", {**spec, "Mode": {"Global": {}}})
    assert "service mode change is not allowed" in changed.message
    assert daemon.docker("service", "update", "-d", "--rollback", "web", check=False).returncode != 0
    for body in ({}, {"Name": "x"}, {"Name": "-", "TaskTemplate": {"ContainerSpec": {"Image": "busybox"}}}):
        assert daemon.http("POST", "/services/create", body).status == 400
    assert daemon.http("GET", "/services/nobody").status == 404
    assert daemon.http("GET", "/tasks/nobody").status == 404
    assert daemon.http("DELETE", "/services/nobody").status == 404


def test_filters(swarm: Swarm) -> None:
    daemon = swarm.daemon
    swarm.create("web", "--label", "tier=front")
    swarm.create("worker", "--mode", "global")

    def names(*options: str) -> list[str]:
        return sorted(daemon.docker("service", "ls", "--format", "{{.Name}}", *options).stdout.split())

    assert names() == ["web", "worker"]
    assert names("-f", "name=we") == ["web"]
    assert names("-f", "label=tier=front") == ["web"]
    assert names("-f", "mode=global") == ["worker"]
    swarm.settles("web", 1)
    assert len(swarm.ps("web", "-f", "desired-state=running")) == 1
    assert swarm.ps("web", "-f", "name=web.1")[0]["Node"]
    assert len(daemon.docker("node", "ps", "self", "-q").stdout.split()) == 2


def test_a_global_service_and_its_name(swarm: Swarm) -> None:
    swarm.create("everywhere", "--mode", "global")
    swarm.settles("everywhere", 1)
    [task] = swarm.ps("everywhere")
    node = swarm.tasks("everywhere")[0]["NodeID"]
    assert task["Name"] == f"everywhere.{node}"


def test_history_is_kept_and_limited(swarm: Swarm) -> None:
    daemon = swarm.daemon
    daemon.docker("swarm", "update", "--task-history-limit", "2")
    try:
        swarm.create("brief", args=["sh", "-c", "exit 3"])
        until(lambda: len([s for s in swarm.states("brief") if s == "failed"]) >= 2, "it fails over and over")
        failed = [task for task in swarm.tasks("brief") if task["Status"]["State"] == "failed"]
        assert failed[0]["Status"]["Err"] == "task: non-zero exit (3)"
        assert failed[0]["Status"]["ContainerStatus"]["ExitCode"] == 3
        assert failed[0]["DesiredState"] == "shutdown"
        first = failed[0]["ID"]
        until(lambda: first not in [task["ID"] for task in swarm.tasks("brief")], "the oldest is forgotten")
        until(lambda: len(swarm.tasks("brief")) <= 5, "no more are kept than wanted, and those that run")
    finally:
        daemon.docker("swarm", "update", "--task-history-limit", "5")


def test_restart_conditions_and_attempts(swarm: Swarm) -> None:
    swarm.create("never", "--restart-condition", "none", args=["sh", "-c", "exit 1"])
    swarm.create("failing", "--restart-max-attempts", "2", args=["sh", "-c", "exit 1"])
    swarm.create("done", "--restart-condition", "on-failure", args=["true"])
    until(lambda: swarm.states("failing") == ["failed"] * 3, "it is tried three times")
    until(lambda: swarm.states("never") == ["failed"], "it is tried once")
    until(lambda: swarm.states("done") == ["complete"], "it is done")


def test_an_image_that_does_not_exist_is_rejected(swarm: Swarm) -> None:
    swarm.create("nothing", "--restart-delay", "1h", image="127.0.0.1:9/nothing:1")
    until(lambda: swarm.states("nothing") == ["rejected"], "it cannot be prepared")
    assert swarm.tasks("nothing")[0]["Status"]["Err"]
    swarm.create("wrong", "--restart-delay", "1h", args=["/no/such/program"])
    until(lambda: swarm.states("wrong") == ["failed"], "it cannot be started")
    assert "/no/such/program" in swarm.tasks("wrong")[0]["Status"]["Err"]


def test_placement_constraints(swarm: Swarm) -> None:
    daemon = swarm.daemon
    swarm.create("picky", "--constraint", "node.labels.zone==north")
    swarm.create("here", "--constraint", "node.role == manager", "--constraint", "node.platform.os == linux")
    swarm.settles("here", 1)
    until(lambda: swarm.states("picky") == ["pending"] and swarm.tasks("picky")[0]["Status"].get("Err"), "it waits")
    assert "scheduling constraints not satisfied" in swarm.tasks("picky")[0]["Status"]["Err"]
    daemon.docker("node", "update", "--label-add", "zone=north", "self")
    swarm.settles("picky", 1)
    daemon.docker("node", "update", "--label-rm", "zone", "self")
    swarm.create("few", "--replicas", "3", "--replicas-max-per-node", "2")
    until(lambda: sorted(swarm.states("few")) == ["pending", "running", "running"], "two find a place")
    # As with dockerd, what no node has is no error: the tasks wait.
    swarm.create("red", "--constraint", "node.colour==red")
    until(lambda: swarm.states("red") == ["pending"] and swarm.tasks("red")[0]["Status"].get("Err"), "it waits, too")
    wrong = daemon.docker("service", "create", "-d", "--constraint", "node.role=manager", "busybox", check=False)
    assert wrong.returncode != 0 and "one operator" in wrong.stderr


def test_reservations_and_limits(swarm: Swarm) -> None:
    daemon = swarm.daemon
    swarm.create("huge", "--reserve-cpu", "4096")
    until(lambda: any(task["Status"].get("Err") for task in swarm.tasks("huge")), "there is no such node")
    assert "insufficient resources" in swarm.tasks("huge")[0]["Status"]["Err"]
    swarm.create(
        "small", "--limit-memory", "64m", "--limit-cpu", "0.5", "--limit-pids", "50", "--reserve-memory", "16m"
    )
    [container] = swarm.settles("small", 1)
    host = daemon.http("GET", f"/containers/{container}/json").json()["HostConfig"]
    assert (host["Memory"], host["NanoCpus"], host["PidsLimit"]) == (64 << 20, 500_000_000, 50)
    assert host["MemoryReservation"] == 16 << 20
    cpus = daemon.http("GET", "/info").json()["NCPU"]
    swarm.create("all", "--replicas", "2", "--reserve-cpu", str(cpus))
    until(lambda: sorted(swarm.states("all")) == ["pending", "running"], "one takes all")
    daemon.docker("service", "scale", "-d", "all=1")
    swarm.settles("all", 1)


def test_what_the_template_says_is_what_runs(swarm: Swarm) -> None:
    daemon = swarm.daemon
    swarm.create(
        "web", "--hostname", "{{.Service.Name}}-{{.Task.Slot}}", "--env", "SLOT={{.Task.Slot}}", "--user", "1000:1000",
        "--workdir", "/tmp", "--read-only", "--container-label", "a=b", "--mount", "type=tmpfs,target=/scratch",
        "--host", "db:192.0.2.9", "--init", "--cap-drop", "NET_RAW", "--ulimit", "nofile=100:200", "--label", "x=y",
    )  # fmt: skip
    [container] = swarm.settles("web", 1)
    script = (
        "hostname; echo $SLOT; id -u; pwd; grep db /etc/hosts; ulimit -n; touch /f 2>&1; touch /scratch/f; ls /scratch"
    )
    shown = daemon.docker("exec", container, "sh", "-c", script).stdout.splitlines()
    assert shown[:4] == ["web-1", "1", "1000", "/tmp"]
    assert shown[4].split() == ["192.0.2.9", "db"]
    assert "Read-only file system" in shown[6]
    labels = daemon.http("GET", f"/containers/{container}/json").json()["Config"]["Labels"]
    assert labels["a"] == "b" and "x" not in labels


def test_logs(swarm: Swarm) -> None:
    daemon = swarm.daemon
    swarm.create("talk", "--replicas", "2", args=["sh", "-c", "echo out; echo err >&2; exec sleep 600"])
    swarm.settles("talk", 2)

    def spoken() -> bool:
        heard = daemon.docker("service", "logs", "talk")
        return heard.stdout.count("out") == 2 == heard.stderr.count("err")

    until(spoken, "both have spoken")
    done = daemon.docker("service", "logs", "--timestamps", "talk")
    assert done.stdout.count("out") == 2 and done.stderr.count("err") == 2
    assert "talk.1." in done.stdout and "talk.2." in done.stdout
    task = swarm.tasks("talk")[0]["ID"]
    assert daemon.docker("service", "logs", "--raw", task).stdout == "out\n"
    with daemon.docker_process("service", "logs", "-f", "--raw", task) as follower:
        assert follower.stdout is not None and follower.stdout.readline() == b"out\n"
        follower.kill()


def test_whoever_follows_a_service_hears_its_next_tasks_too(swarm: Swarm) -> None:
    daemon = swarm.daemon
    swarm.create("talk", args=["sh", "-c", "echo I am $HOSTNAME; exec sleep 600"])
    [first] = swarm.settles("talk", 1)
    with daemon.docker_process("service", "logs", "-f", "--raw", "talk", stderr=subprocess.DEVNULL) as follower:
        assert follower.stdout is not None and follower.stdout.readline() == f"I am {first[:12]}\n".encode()
        daemon.docker("rm", "-f", first)
        until(lambda: swarm.containers("talk") not in ([], [first]), "it is replaced")
        [second] = swarm.settles("talk", 1)
        assert follower.stdout.readline() == f"I am {second[:12]}\n".encode()
        daemon.docker("service", "rm", "talk")
        assert follower.stdout.read() == b"", "there is nothing to follow any more"


def test_events(swarm: Swarm) -> None:
    daemon = swarm.daemon
    since = str(int(time.time()))
    swarm.create("web")
    swarm.settles("web", 1)
    daemon.docker("service", "rm", "web")
    events = daemon.docker(
        "events", "--since", since, "--until", str(int(time.time()) + 1), "--filter", "type=service"
    ).stdout
    assert "service create" in events and "service remove" in events


def test_privileges(swarm: Swarm) -> None:
    daemon = swarm.daemon
    profile = {
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}],
    }
    wanted = {
        "NoNewPrivileges": True,
        "Seccomp": {"Mode": "custom", "Profile": base64.b64encode(json.dumps(profile).encode()).decode()},
        "AppArmor": {"Mode": "disabled"},
    }
    container = {"Image": "busybox", "Command": ["sleep", "600"], "StopGracePeriod": 0, "Privileges": wanted}
    body = {"Name": "web", "TaskTemplate": {"ContainerSpec": container}}
    assert daemon.http("POST", "/services/create", body).status == 201
    [task] = swarm.settles("web", 1)
    assert swarm.inspect("web")["Spec"]["TaskTemplate"]["ContainerSpec"]["Privileges"] == {
        "CredentialSpec": None,
        "SELinuxContext": None,
        **wanted,
    }
    refused = daemon.docker("exec", task, "mkdir", "/x", check=False)
    assert refused.returncode != 0 and "Operation not permitted" in refused.stderr
    assert "NoNewPrivs:\t1" in daemon.docker("exec", task, "cat", "/proc/self/status").stdout
    container["Privileges"] = {"Seccomp": {"Mode": "custom", "Profile": "e30"}}
    assert daemon.http("POST", "/services/create", {**body, "Name": "wrong"}).status == 400
    container["Privileges"] = {"CredentialSpec": {"File": "x"}}
    assert daemon.http("POST", "/services/create", {**body, "Name": "wrong"}).status == 501


def test_tasks_leave_a_node_that_does_not_suit_them_any_more(swarm: Swarm) -> None:
    daemon = swarm.daemon
    daemon.docker("node", "update", "--label-add", "zone=north", "self")
    swarm.create("web", "--replicas", "2", "--constraint", "node.labels.zone==north")
    swarm.create("everywhere", "--mode", "global", "--constraint", "node.labels.zone==north")
    swarm.settles("web", 2)
    swarm.settles("everywhere", 1)
    daemon.docker("node", "update", "--label-rm", "zone", "self")
    until(lambda: not swarm.containers("web") and not swarm.containers("everywhere"), "they leave")
    until(lambda: swarm.states("web").count("pending") == 2, "and wait for another node")
    assert daemon.docker("service", "ls", "-f", "name=everywhere", "--format", "{{.Replicas}}").stdout.strip() == "0/0"
    swarm.update("web", "--constraint-rm", "node.labels.zone==north")
    swarm.settles("web", 2)


def test_a_port_of_the_node_has_one_owner(swarm: Swarm) -> None:
    port = free_port()
    swarm.create("web", "--replicas", "2", "--publish", f"published={port},target=80,mode=host")
    until(lambda: sorted(swarm.states("web")) == ["pending", "running"], "one has it, the other waits")
    until(lambda: "host-mode port already in use" in str(swarm.tasks("web")), "it says why")
    [owner] = swarm.containers("web")
    swarm.daemon.docker("rm", "-f", owner)
    until(lambda: swarm.containers("web") not in ([], [owner]), "the next one gets it")
    until(lambda: swarm.states("web").count("running") == swarm.states("web").count("pending") == 1, "the other waits")


def test_a_volume_for_each_task(swarm: Swarm) -> None:
    swarm.create("db", "--replicas", "2", "--mount", "type=volume,source=data-{{.Task.Slot}},target=/data")
    swarm.settles("db", 2)
    assert swarm.daemon.docker("volume", "ls", "-q").stdout.split() == ["data-1", "data-2"]
    swarm.remove_all()
    swarm.daemon.docker("volume", "rm", "data-1", "data-2")


def test_only_what_runs_is_desired_to(swarm: Swarm) -> None:
    swarm.create("web", "--restart-delay", "1h")
    [container] = swarm.settles("web", 1)
    swarm.daemon.docker("kill", container)
    until(lambda: swarm.states("web") == ["failed"], "its end is seen")
    assert swarm.ps("web", "-f", "desired-state=running") == []
    assert len(swarm.ps("web", "-f", "desired-state=shutdown")) == 1
    node = swarm.ps("web")[0]["Node"]
    assert len(swarm.ps("web", "-f", f"node={node}")) == 1
    other = swarm.daemon.docker("service", "ps", "-f", "node=other", "web", check=False)
    assert "node other not found" in other.stderr
