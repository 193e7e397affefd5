"""A worker joins a manager: each a real daemon on a host of its own, with docker's own commands."""

import asyncio
import base64
import contextlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from husk.errors import Conflict
from husk.storage.secrets.sealing import Sealer
from husk.swarm.ca import authority
from husk.swarm.ca.identity import IdentityFiles
from husk.swarm.model.services import TaskStatus
from husk.swarm.port.assignment_messages import Report, ReportReply, Reports, decoded, encoded
from husk.swarm.port.dispatch import DispatchCalls
from husk.swarm.port.managers import Managers
from husk.swarm.port.messages import RENEW, CertificateReply, RenewRequest
from husk.text.endpoints import HostPort
from tests.support.hosts import HostDaemon, Hosts
from tests.support.waiting import until

SLEEPER = ("--detach", "--no-resolve-image", "--stop-grace-period", "0s")
PROGRAM = ("busybox", "sleep", "600")


class Pair:
    def __init__(self, hosts: Hosts) -> None:
        self.hosts = hosts
        self.manager: HostDaemon = hosts[0].daemon()
        self.worker: HostDaemon = hosts[1].daemon()
        self.manager.docker("swarm", "init", "--advertise-addr", hosts[0].address)
        self.join()

    def join(self) -> None:
        token = self.manager.docker("swarm", "join-token", "-q", "worker").stdout.strip()
        said = self.worker.docker("swarm", "join", "--token", token, f"{self.hosts[0].address}:2377").stdout
        assert said.strip() == "This node joined a swarm as a worker."
        until(lambda: self.state() == "ready", "that the worker is ready")

    @property
    def ids(self) -> tuple[str, str]:
        return own(self.manager)["NodeID"], own(self.worker)["NodeID"]

    def state(self, node: str = "") -> str:
        found = self.manager.http("GET", f"/nodes/{node or self.ids[1]}").json()
        return str(found["Status"]["State"])

    def homes(self, name: str) -> list[str]:
        """The nodes of the tasks that run and are wanted, by what is recorded."""
        filters = quote(json.dumps({"service": [name], "desired-state": ["running"]}))
        tasks: list[dict[str, Any]] = self.manager.http("GET", f"/tasks?filters={filters}").json()
        return sorted(task["NodeID"] for task in tasks if task["Status"]["State"] == "running")

    def create(self, name: str, replicas: int, *options: str, program: tuple[str, ...] = PROGRAM) -> None:
        what = ("--name", name, "--replicas", str(replicas), *options, *program)
        self.manager.docker("service", "create", *SLEEPER, *what)

    def remove(self, name: str) -> None:
        self.manager.docker("service", "rm", name)
        until(lambda: not running(self.manager) and not running(self.worker), "nothing runs any more")


def own(daemon: HostDaemon) -> dict[str, Any]:
    found: dict[str, Any] = daemon.http("GET", "/info").json()["Swarm"]
    return found


def running(daemon: HostDaemon) -> set[str]:
    return {container["Id"] for container in daemon.http("GET", "/containers/json").json()}


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Hosts(2) as hosts:
        pair = Pair(hosts)
        yield pair
        pair.worker.docker("swarm", "leave", "--force", check=False)
        pair.manager.docker("swarm", "leave", "--force", check=False)


def test_a_worker_and_what_it_may_be_asked(pair: Pair) -> None:
    manager, worker = pair.ids
    told = own(pair.worker)
    assert (told["LocalNodeState"], told["ControlAvailable"], told["Error"]) == ("active", False, "")
    until(lambda: own(pair.worker)["RemoteManagers"] == [{"NodeID": manager, "Addr": "192.0.2.1:2377"}], "the manager")
    until(lambda: own(pair.worker)["NodeAddr"] == "192.0.2.2", "that it knows its address")
    assert "Nodes" not in told and pair.worker.http("GET", "/_ping").headers["Swarm"] == "active/worker"
    nodes = {node["ID"]: node for node in pair.manager.http("GET", "/nodes").json()}
    assert set(nodes) == {manager, worker}
    described = nodes[worker]["Description"]
    assert described["Resources"] == nodes[manager]["Description"]["Resources"] and described["TLSInfo"]
    assert "ManagerStatus" not in nodes[worker] and nodes[worker]["Status"]["Addr"] == "192.0.2.2"
    for path in ("/swarm", "/nodes", "/services", "/tasks", "/secrets", "/configs"):
        refused = pair.worker.http("GET", path)
        assert refused.status == 503 and b"Worker nodes can't be used to view or modify" in refused.body
    until(lambda: "ingress" in pair.worker.docker("network", "ls").stdout, "the ingress network, as on every node")
    refused = pair.worker.http("DELETE", "/networks/ingress")
    assert refused.status == 503 and b"Worker nodes can't be used to view or modify" in refused.body
    again = pair.worker.docker("swarm", "join", "--token", "SWMTKN-1-x-y", "192.0.2.1", check=False)
    assert "This node is already part of a swarm" in again.stderr
    assert pair.worker.docker("swarm", "init", check=False).returncode != 0


def test_tasks_are_spread_and_go_on_while_daemons_start_again(pair: Pair) -> None:
    both = sorted(pair.ids * 2)
    pair.create("web", 4)
    until(lambda: pair.homes("web") == both, "two on each")
    here, there = running(pair.manager), running(pair.worker)
    assert (len(here), len(there)) == (2, 2)
    pair.worker.restart()
    pair.manager.restart()
    until(lambda: pair.state() == "ready" and not own(pair.worker)["Error"], "that they know each other again")
    assert pair.homes("web") == both
    pair.manager.docker("service", "scale", "--detach", "web=6")
    until(lambda: len(pair.homes("web")) == 6, "two more")
    assert here < running(pair.manager) and there < running(pair.worker), "those from before ran on"
    pair.remove("web")


def test_secrets_come_with_tasks_and_a_worker_learns_nothing_else(pair: Pair) -> None:
    manager, worker = pair.ids
    secret, other = (pair.manager.http("POST", "/secrets/create", body(name)).json()["ID"] for name in ("own", "other"))
    says = ("busybox", "sh", "-c", "cat /run/secrets/*; echo; exec sleep 600")
    pair.create("theirs", 1, "--constraint", f"node.id=={worker}", "--secret", "own", program=says)
    pair.create("ours", 1, "--constraint", f"node.id=={manager}", "--secret", "other", program=says)
    until(lambda: pair.homes("theirs") == [worker] and pair.homes("ours") == [manager], "each where it should be")
    [here] = running(pair.worker)
    until(lambda: pair.worker.docker("logs", here).stdout == "value of own\n", "the secret is in its task")
    # A worker may have joined a moment ago, and not be asked for logs yet.
    logs = ("service", "logs", "theirs")
    until(lambda: pair.manager.docker(*logs).stdout.endswith("| value of own\n"), "the manager reads its log")
    assert pair.manager.docker("service", "logs", "ours").stdout.endswith("| value of other\n")
    # The worker's certificate in other hands: whatever it asks for, it gets its own share.
    told, refused = pair.hosts[1].inside(lambda: asyncio.run(curious(pair)))
    assert secret.encode() in told and base64.b64encode(b"value of own") in told
    foreign = [task["ID"] for task in pair.manager.http("GET", "/tasks").json() if task["NodeID"] == manager]
    assert foreign
    for word in (other, *foreign, "SWMTKN", "PRIVATE"):
        assert word.encode() not in told
    assert base64.b64encode(b"value of other") not in told
    assert set(refused) == {"report", "remove", "another name"}, refused
    assert pair.homes("ours") == [manager]
    pair.manager.docker("service", "rm", "ours")
    pair.remove("theirs")
    pair.manager.docker("secret", "rm", "own", "other")
    until(lambda: not list((pair.worker.config.exec_root / "secrets").glob("*")), "nothing of it is left")


def body(name: str) -> dict[str, str]:
    return {"Name": name, "Data": base64.b64encode(f"value of {name}".encode()).decode()}


async def curious(pair: Pair) -> tuple[bytes, list[str]]:
    """All that a manager says to whoever has the worker's certificate, and what it does not do for it."""
    root = pair.worker.config.data_root
    sealer = Sealer(root / "swarm.key")
    context = "the key of the node's certificate"
    files = IdentityFiles(
        root / "swarm.node", lambda key: key, lambda sealed: sealer.unseal(sealed, context), authority.fits
    )
    identity = files.load()
    assert identity is not None
    managers = Managers([HostPort(pair.hosts[0].address, 2377)], identity)
    calls = DispatchCalls(managers)
    told, refused = b"", []
    try:
        # The worker itself asks again soon, and has it alone.
        with contextlib.suppress(TimeoutError, Conflict):
            async with asyncio.timeout(3), aclosing(calls.assignments()) as news:
                async for message in news:
                    told += message
        tasks = pair.manager.http("GET", "/tasks").json()
        [foreign] = [task["ID"] for task in tasks if task["NodeID"] == pair.ids[0]]
        failed = TaskStatus(timestamp="", state="failed")
        for what, report in (("report", Report(task_id=foreign, status=failed)), ("remove", Report(task_id=foreign))):
            if decoded(await calls.report(encoded(Reports(reports=[report]))), ReportReply).refused == [foreign]:
                refused.append(what)
        # Of a request only the key counts: nobody gets another's name by it.
        _, request = authority.new_request()
        renewed = await managers.unary(RENEW, RenewRequest(request=request), CertificateReply)
        if authority.look(renewed.certificate).holder == authority.look(identity.certificate).holder:
            refused.append("another name")
    finally:
        await managers.close()
    return told, refused


def test_logs_of_a_workers_tasks_are_read_on_the_manager(pair: Pair) -> None:
    worker = pair.ids[1]
    script = "echo out; echo err >&2; while [ ! -e /go ]; do sleep 0.05; done; echo more; exec sleep 600"
    says = ("busybox", "sh", "-c", script)
    pair.create("chatty", 2, "--constraint", f"node.id=={worker}", program=says)
    until(lambda: pair.homes("chatty") == [worker] * 2, "both run on the worker")

    def written(*options: str) -> list[str]:
        said = pair.manager.docker("service", "logs", "--raw", *options, "chatty")
        return sorted((said.stdout + said.stderr).splitlines())

    until(lambda: written() == ["err", "err", "out", "out"], "all they said")
    assert written("--tail", "1") in (["err"] * 2, ["out"] * 2, ["err", "out"])
    [first, _] = running(pair.worker)
    following = ("service", "logs", "--follow", "--raw", "--tail", "0", "chatty")
    with pair.manager.docker_process(*following) as follower:
        until(lambda: readers(pair.worker) == 2, "the worker reads both logs on")
        pair.worker.docker("exec", first, "touch", "/go")
        assert follower.stdout is not None and follower.stdout.readline() == b"more\n"
        pair.manager.docker("service", "scale", "--detach", "chatty=3")
        assert follower.stdout.readline() == b"out\n", "of a task that came later"
        follower.kill()
    until(lambda: readers(pair.worker) == 0, "nobody reads any more")
    one = pair.manager.http("GET", f"/tasks?filters={quote(json.dumps({'service': ['chatty']}))}").json()[0]["ID"]
    assert b"out" in pair.manager.http("GET", f"/tasks/{one}/logs?stdout=1").body
    pair.worker.kill9()
    until(lambda: "cannot be read from" in "".join(written()), "that they cannot be read")
    pair.worker.start()
    until(lambda: "more" in written(), "they can again")
    pair.remove("chatty")


def test_who_follows_logs_goes_on_when_the_workers_daemon_is_back(pair: Pair) -> None:
    """The logs go on whether it ended in order or not: no line comes twice, and none is lost."""
    script = "n=0; while true; do n=$((n+1)); echo line $n; sleep 0.1; done"
    pair.create("counts", 1, "--constraint", f"node.id=={pair.ids[1]}", program=("busybox", "sh", "-c", script))
    until(lambda: pair.homes("counts") == [pair.ids[1]], "it runs on the worker")
    with pair.manager.docker_process("service", "logs", "--follow", "--raw", "counts") as follower:
        assert follower.stdout is not None
        expected = 1
        for end in (pair.worker.stop, pair.worker.kill9, None):
            for _ in range(10):
                assert follower.stdout.readline() == b"line %d\n" % expected
                expected += 1
            if end is not None:
                end()
                pair.worker.start()
                until(lambda: readers(pair.worker) == 1, "the worker reads the log on")
        follower.kill()
    until(lambda: readers(pair.worker) == 0, "nobody reads any more")
    pair.remove("counts")


def readers(daemon: HostDaemon) -> int:
    """Return how many logs a daemon has open."""
    found = 0
    for descriptor in Path(f"/proc/{daemon.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found += os.readlink(descriptor).endswith("container.log")
    return found


def test_nodes_are_heard_as_often_as_the_swarm_wants(pair: Pair) -> None:
    worker = pair.ids[1]
    pair.manager.docker("swarm", "update", "--dispatcher-heartbeat", "2s")
    gaps, last = list[int](), 0

    def twice() -> bool:
        """Tell if it was silent for about two seconds twice in a row. It is for five otherwise."""
        nonlocal last
        silent = silence(pair.worker)
        if silent < last and last > 1000:
            gaps.append(last)
        last = silent
        return len(gaps) > 1 and max(gaps[-2:]) < 3500

    until(twice, "heartbeats every two seconds")
    pair.hosts.isolate(pair.hosts[1])
    until(lambda: pair.state(worker) == "down", "that it is down")
    pair.hosts.mend()
    pair.manager.docker("swarm", "update", "--dispatcher-heartbeat", "5s")
    until(lambda: pair.state(worker) == "ready", "it is back")


def silence(daemon: HostDaemon) -> int:
    """For how many milliseconds it has sent nothing to its manager."""
    said = daemon.where.run("ss", "-Htin", "state", "established", "dport", "=", ":2377")
    return min((int(found) for found in re.findall(r"lastsnd:(\d+)", said)), default=0)


def test_availability_and_labels(pair: Pair) -> None:
    manager, worker = pair.ids
    pair.manager.docker("node", "update", "--label-add", "zone=south", worker)
    pair.create("south", 1, "--constraint", "node.labels.zone==south")
    pair.create("web", 4)
    until(lambda: pair.homes("south") == [worker] and len(pair.homes("web")) == 4, "all run")
    pair.manager.docker("node", "update", "--availability", "drain", worker)
    until(lambda: pair.homes("web") == [manager] * 4 and not running(pair.worker), "the other runs them")
    assert pair.homes("south") == []
    busy = pair.manager.docker("node", "rm", worker, check=False)
    assert "is not down and can't be removed" in busy.stderr
    pair.manager.docker("node", "update", "--availability", "active", "--label-rm", "zone", worker)
    pair.manager.docker("service", "rm", "south")
    pair.remove("web")


def test_a_lost_workers_tasks_run_elsewhere_and_end_first_when_it_returns(pair: Pair) -> None:
    manager, worker = pair.ids
    pair.create("web", 4)
    until(lambda: pair.homes("web") == sorted(pair.ids * 2), "two on each")
    before = running(pair.worker)
    pair.hosts.isolate(pair.hosts[1])
    until(lambda: pair.homes("web") == [manager] * 4, "the other runs all")
    assert pair.state(worker) == "down" and running(pair.worker) == before
    until(lambda: bool(own(pair.worker)["Error"]), "that the worker knows that nobody hears it")
    pair.hosts.mend()
    until(lambda: not running(pair.worker), "its old tasks end")
    until(lambda: pair.state(worker) == "ready", "it is back")
    assert pair.homes("web") == [manager] * 4
    # Its daemon dies: what it ran is found again.
    pair.manager.docker("service", "scale", "--detach", "web=6")
    until(lambda: len(pair.homes("web")) == 6, "two more")
    there = running(pair.worker)
    assert len(there) == 2
    pair.worker.kill9()
    pair.worker.start()
    until(lambda: pair.state(worker) == "ready" and not own(pair.worker)["Error"], "it is heard again")
    assert running(pair.worker) == there and len(pair.homes("web")) == 6
    pair.remove("web")


def test_what_a_worker_started_and_could_tell_nobody_is_kept_by_its_next_daemon(pair: Pair) -> None:
    worker = pair.ids[1]
    pair.manager.docker("swarm", "update", "--dispatcher-heartbeat", "60s")  # it is not given up meanwhile
    # The worker hears of that with its next heartbeat, and the first one of a daemon comes at once.
    pair.worker.kill9()
    pair.worker.start()
    pair.create("first", 1, "--constraint", f"node.id=={worker}")
    until(lambda: pair.homes("first") == [worker], "the worker is back")
    pair.remove("first")
    pair.hosts.cut(pair.hosts[1], pair.hosts[0])
    try:
        pair.create("web", 1, "--constraint", f"node.id=={worker}")
        job = ("--mode", "replicated-job", "--restart-condition", "none", "--constraint", f"node.id=={worker}")
        pair.manager.docker("service", "create", *SLEEPER[:2], "--name", "once", *job, "busybox", "true")
        until(lambda: states(pair.worker) == {"web": ["running"], "once": ["exited"]}, "that both were started")
        before = containers(pair.worker)
        assert pair.homes("web") == [] and told(pair.manager, "once") == {"assigned"}, "nobody has heard of it"
        pair.worker.kill9()
    finally:
        pair.hosts.mend()
    pair.worker.start()
    until(lambda: pair.homes("web") == [worker] and told(pair.manager, "once") == {"complete"}, "that it is told")
    assert containers(pair.worker) == before, "they are the same, and the job was done once"
    pair.manager.docker("swarm", "update", "--dispatcher-heartbeat", "5s")
    pair.manager.docker("service", "rm", "once")
    pair.remove("web")


def states(daemon: HostDaemon) -> dict[str, list[str]]:
    """Those of the containers of each service."""
    found: dict[str, list[str]] = {}
    for container in daemon.http("GET", "/containers/json?all=1").json():
        found.setdefault(container["Labels"]["com.docker.swarm.service.name"], []).append(container["State"])
    return found


def containers(daemon: HostDaemon) -> set[str]:
    return {container["Id"] for container in daemon.http("GET", "/containers/json?all=1").json()}


def told(manager: HostDaemon, name: str) -> set[str]:
    """The states of the tasks of a service, by what is recorded."""
    tasks = manager.http("GET", f"/tasks?filters={quote(json.dumps({'service': [name]}))}").json()
    return {task["Status"]["State"] for task in tasks}


def test_leaving_joining_again_and_being_removed(pair: Pair) -> None:
    manager, worker = pair.ids
    pair.create("web", 2)
    until(lambda: pair.homes("web") == sorted(pair.ids), "one on each")
    assert pair.worker.docker("swarm", "leave").stdout.strip() == "Node left the swarm."
    assert not pair.worker.http("GET", "/containers/json?all=1").json()
    assert own(pair.worker)["LocalNodeState"] == "inactive" and own(pair.worker)["NodeID"] == ""
    assert not (pair.worker.config.data_root / "swarm.node").exists()
    until(lambda: pair.homes("web") == [manager] * 2, "the other runs them")
    assert pair.state(worker) == "down"
    pair.manager.docker("node", "rm", worker)
    pair.join()
    again = pair.ids[1]
    assert again != worker
    pair.manager.docker("service", "scale", "--detach", "web=4")
    until(lambda: pair.homes("web") == sorted(pair.ids * 2), "two on each")
    pair.manager.docker("node", "rm", "--force", again)
    until(lambda: pair.homes("web") == [manager] * 4 and not running(pair.worker), "the manager runs all")
    assert "removed from the swarm" in own(pair.worker)["Error"]
    pair.worker.docker("swarm", "leave")
    pair.join()
    pair.remove("web")


def test_a_new_root_reaches_the_worker(pair: Pair) -> None:
    worker = pair.ids[1]
    pair.manager.docker("swarm", "ca", "--rotate", "--quiet")
    root = pair.manager.docker("swarm", "ca").stdout.strip()
    kept = pair.worker.config.data_root / "swarm.node" / "roots.crt"
    until(lambda: kept.read_text().strip() == root, "the worker believes in the new root alone")
    pair.worker.restart()
    pair.create("web", 1, "--constraint", f"node.id=={worker}")
    until(lambda: pair.homes("web") == [worker], "a task with the new certificates")
    assert own(pair.worker)["Error"] == ""
    pair.remove("web")
