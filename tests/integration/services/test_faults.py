"""Faults of a swarm of three managers, each with its own etcd, and two workers: daemons and members of etcd that die,
hosts that are cut off in part or wholly, a minority, a full disk, wrong clocks, most managers lost.

All share one swarm, whose making takes longer than most of them; `web` is a service that has a task on each node.
"""

import base64
import itertools
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from husk.engine.model.clock import parse_rfc3339
from tests.support.disk import SmallDisk, small_disk
from tests.support.hosts import HostDaemon, Hosts
from tests.support.nodes import (
    PROGRAM,
    SLEEPER,
    Nodes,
    again,
    asked_by,
    homes,
    insist,
    leader,
    member,
    nodes_of,
    of_service,
    on,
    own,
    pinned,
    running,
    states,
    told,
    trouble,
    updated,
)
from tests.support.waiting import until

# All of these wait for what takes 5 to 20 seconds on an idle machine.
pytestmark = pytest.mark.timeout(300)
SIZE = 5
FULL = "no space left on device"
# Out of Debian's package libfaketime, by scripts/setup.
FAKETIME = Path(__file__).resolve().parents[3] / ".venv/peers/lib/libfaketime.so.1"


@pytest.fixture(scope="module")
def disk() -> Iterator[SmallDisk]:
    """Room for etcd, which takes twice 64 MB for its log."""
    with small_disk(256) as made:
        yield made


@pytest.fixture(scope="module")
def swarm(disk: SmallDisk) -> Iterator[Nodes]:
    with Hosts(SIZE) as hosts, Nodes(hosts, managers=3, options={2: {"data_root": disk.root / "data"}}) as nodes:
        nodes.form()
        nodes.first.docker("service", "create", *SLEEPER, "--name", "web", "--replicas", str(SIZE), *PROGRAM)
        until(lambda: len(homes(nodes.first, "web")) == SIZE, "its tasks")
        yield nodes


@pytest.fixture
def nodes(swarm: Nodes) -> Iterator[Nodes]:
    """With all nodes ready, and a task on each."""
    until(swarm.settled, "that all are ready")
    if not spread(swarm):
        again(swarm.first, "web")
        # Tasks are spread from time to time on the way, too.
        until(lambda: updated(swarm.first, "web"), "new tasks for all")
    until(lambda: spread(swarm), "a task on each")
    yield swarm
    swarm.hosts.mend()
    for daemon in swarm.daemons:
        if daemon.process is None:
            daemon.start()
    # Where a test failed.
    found = swarm.first.http("GET", "/services").json()
    for name in [service["Spec"]["Name"] for service in found if "Spec" in service]:
        if name != "web":
            swarm.first.docker("service", "rm", name)


def spread(nodes: Nodes) -> bool:
    """Tell if there is one task on each, and nothing else."""
    here = homes(nodes.first, "web") == sorted(nodes.by_id())
    return here and all(len(found) == 1 for found in nodes.containers().values())


def test_the_leaders_daemon_is_killed(nodes: Nodes) -> None:
    before = nodes.containers()
    by_id = nodes.by_id()
    first = by_id[gone := until(lambda: leader(nodes.first), "a leader")]
    left = [daemon for daemon in nodes.managers if daemon is not first]
    first.kill9()
    until(lambda: leader(left[0]) not in ("", gone), "another leader")
    pinned("meanwhile", nodes.workers[0], left[1])
    first.start()
    until(nodes.settled, "that it is back")
    # On a machine that is busy it may have been away for so long that another node has got its task.
    others = [daemon for daemon in nodes.daemons if daemon is not first]
    assert all(before[daemon.where.name] <= running(daemon) for daemon in others), "nothing was stopped that was fine"


def test_a_member_of_etcd_is_killed(nodes: Nodes) -> None:
    before = nodes.containers()
    for victim in nodes.managers:
        pid = member(victim)
        os.kill(pid, signal.SIGKILL)
        other = nodes.managers[nodes.managers.index(victim) - 1]
        pinned("meanwhile", nodes.workers[0], other)
        until(partial(lambda daemon, old: member(daemon) not in (0, old), victim, pid), "its member again")
    until(nodes.settled, "that all is known everywhere")
    until(lambda: nodes.containers() == before, "nothing was stopped that was fine")


def test_a_workers_daemon_is_killed(nodes: Nodes) -> None:
    worker = nodes.workers[0]
    node, place = own(worker)["NodeID"], on(worker)
    nodes.first.docker("service", "create", *SLEEPER, "--name", "removed", *place, *PROGRAM)
    nodes.first.docker("service", "create", *SLEEPER, "--name", "ends", *place, *PROGRAM)
    until(lambda: [homes(nodes.first, name) for name in ("removed", "ends")] == [[node]] * 2, "tasks on the worker")
    [web], [ends] = (of_service(worker, name) for name in ("web", "ends"))
    pid = worker.http("GET", f"/containers/{ends}/json").json()["State"]["Pid"]
    worker.kill9()
    os.kill(pid, signal.SIGKILL)
    nodes.first.docker("service", "rm", "removed")
    nodes.first.docker("service", "create", *SLEEPER, "--name", "new", *place, *PROGRAM)
    worker.start()
    until(lambda: homes(nodes.first, "new") == [node], "what was declared meanwhile")
    until(lambda: not of_service(worker, "removed"), "what was removed meanwhile is gone")
    until(lambda: of_service(worker, "ends") not in ([], [ends]), "what ended meanwhile is replaced")
    assert of_service(worker, "web") == [web], "what was fine was not stopped"
    nodes.first.docker("service", "rm", "new", "ends")
    until(lambda: running(worker) == {web}, "their end")


@pytest.mark.parametrize("ways", [("out", "in"), ("both", "both")])
def test_workers_that_lose_one_manager_ask_another(nodes: Nodes, ways: tuple[str, str]) -> None:
    """Nothing that a worker sends arrives at its manager, nothing that the manager sends at the worker, or neither."""
    before = nodes.containers()
    asked = [asked_by(worker, nodes.managers) for worker in nodes.workers]
    for worker, manager, way in zip(nodes.workers, asked, ways, strict=True):
        lose(nodes, worker, manager, way)
    for worker, manager in zip(nodes.workers, asked, strict=True):
        others = [daemon for daemon in nodes.managers if daemon is not manager]
        asked_by(worker, others)
        pinned(f"on-{worker.where.name}", worker, nodes.first)
    nodes.hosts.mend()
    until(lambda: nodes.containers() == before, "no task has moved")


def lose(nodes: Nodes, worker: HostDaemon, manager: HostDaemon, way: str) -> None:
    if way in ("out", "both"):
        nodes.hosts.cut(worker.where, manager.where)
    if way in ("in", "both"):
        nodes.hosts.cut(manager.where, worker.where)


def test_nodes_that_lose_all_others(nodes: Nodes) -> None:
    """A manager, both ways, so that it is a minority; one worker whose packets are lost, another that gets none."""
    alone, *others = nodes.managers
    before = nodes.containers()
    secret = alone.docker("secret", "create", "word", "-", input="kept").stdout.strip()
    nodes.hosts.isolate(alone.where)
    for worker, way in zip(nodes.workers, ("out", "in"), strict=True):
        for manager in others:
            lose(nodes, worker, manager, way)
    kept = sorted(own(daemon)["NodeID"] for daemon in others)
    until(lambda: refused(alone), "that a minority cannot be asked, and why")

    def elsewhere() -> bool:
        found = homes(others[0], "web")
        return len(found) == SIZE and set(found) == set(kept)

    until(elsewhere, "that the others run all")
    assert states(others[1]) == ["down"] * 3 + ["ready"] * 2
    for daemon in (alone, *nodes.workers):
        assert running(daemon) == before[daemon.where.name], "it runs on"
        until(partial(trouble, daemon), "that it knows that nobody hears it")
    others[0].docker("service", "create", *SLEEPER, "--name", "later", *PROGRAM)
    nodes.hosts.mend()
    until(nodes.settled, "that all are back")
    until(lambda: not any(running(daemon) for daemon in (alone, *nodes.workers)), "their old tasks end")
    assert {service["Spec"]["Name"] for service in alone.http("GET", "/services").json()} == {"web", "later"}
    assert alone.http("GET", f"/secrets/{secret}").status == 200
    assert len(homes(alone, "web")) == SIZE
    alone.docker("service", "rm", "later")
    alone.docker("secret", "rm", "word")


def refused(daemon: HostDaemon) -> bool:
    answer = daemon.http("GET", "/services")
    return answer.status == 503 and b"majority" in answer.body


def test_workers_of_a_manager_in_a_minority_ask_another(nodes: Nodes) -> None:
    """The managers alone are cut off from one another: a worker reaches all of them."""
    before = nodes.containers()
    alone = asked_by(nodes.workers[0], nodes.managers)
    others = [daemon for daemon in nodes.managers if daemon is not alone]
    nodes.hosts.divide([alone.where], [daemon.where for daemon in others])
    until(lambda: refused(alone), "that it cannot be asked, and why")
    for worker in nodes.workers:
        asked_by(worker, others)
        pinned(f"on-{worker.where.name}", worker, others[0])
    nodes.hosts.mend()
    until(nodes.settled, "that it is back")
    # What the manager itself ran, others may have got.
    assert all(running(worker) >= before[worker.where.name] for worker in nodes.workers), "no task of theirs has moved"


def test_the_disk_of_a_manager_is_full(nodes: Nodes, disk: SmallDisk) -> None:
    """Its member of etcd dies of it, and so does what its daemon would start there; all others go on."""
    first, second, third = nodes.managers
    before, numbers = nodes.containers(), itertools.count()

    def dies() -> bool:
        # Again and again: etcd gives up what it had begun to write when it dies.
        disk.fill()
        if member(third):
            burden(first, next(numbers))
        return FULL in trouble(third)

    try:
        until(dies, "that it says what is wrong")
        pinned("meanwhile", nodes.workers[0], second)
        disk.fill()
        stuck = ("--restart-delay", "1s", "--name", "stuck", *on(third), *PROGRAM)
        insist(first, "service", "create", *SLEEPER, *stuck, done="name conflicts")
        until(lambda: FULL in told(first, "stuck"), "why nothing can be started there")
        third.kill9()
        third.start()
        until(dies, "that the next daemon says it, too")
        until(lambda: third.http("GET", "/services").status == 200, "other members that answer")
    finally:
        disk.make_room()
    until(lambda: member(third) and not trouble(third), "its member again")
    until(lambda: homes(third, "stuck") == [own(third)["NodeID"]], "what could not be started")
    third.docker("service", "rm", "stuck")
    for config in third.http("GET", "/configs").json():
        third.docker("config", "rm", config["ID"])
    os.kill(member(first), signal.SIGSTOP)
    try:
        pinned("later", nodes.workers[1], second)
    finally:
        os.kill(member(first), signal.SIGCONT)
    until(lambda: nodes.containers() == before, "nothing was stopped that was fine")


def burden(manager: HostDaemon, number: int) -> None:
    """Something more in the store, or nothing yet: where the member that led it has died it is silent for a moment, or
    without a leader."""
    body = {"Name": f"burden{number}", "Data": base64.b64encode(os.urandom(300_000)).decode()}
    answer = manager.http("POST", "/configs/create", body)
    assert answer.status in (201, 503), answer.body


@pytest.mark.skipif(not FAKETIME.exists(), reason="libfaketime is missing: scripts/setup --test takes it from Debian")
def test_clocks_are_minutes_wrong(nodes: Nodes) -> None:
    """A manager's and a worker's are ahead, another manager's is behind: what is to happen seconds later does, whoever
    plans.

    libfaketime moves what the daemon, its TLS and its conmons see. etcd does not ask the C library for the time: its
    clock, by which it looks at certificates, stays right here. Nor does a clock jump while a daemon runs.
    """
    planner = nodes.by_id()[until(lambda: leader(nodes.first), "a leader")]
    fast, slow = (daemon for daemon in nodes.managers if daemon is not planner)
    wrong = {fast: "+7m", slow: "-7m", nodes.workers[0]: "+7m"}
    for daemon, offset in wrong.items():
        daemon.program_environment |= {"LD_PRELOAD": str(FAKETIME), "FAKETIME": offset, "DONT_FAKE_MONOTONIC": "1"}
        daemon.restart()
    try:
        until(nodes.settled, "that all are back")
        assert abs(clock(fast) - clock(slow)) > 600
        restarted_and_updated(list(wrong), fast)
        planner.kill9()
        until(lambda: leader(fast) in [own(daemon)["NodeID"] for daemon in (fast, slow)], "one with a wrong clock")
        planner.start()
        restarted_and_updated(list(wrong), slow)
        until(nodes.settled, "that it is back")
        slow.docker("swarm", "ca", "--rotate", "--detach", "--quiet")
        until(lambda: not fast.http("GET", "/swarm").json()["RootRotationInProgress"], "new certificates for all")
        until(nodes.settled, "that all are heard")
    finally:
        for daemon in wrong:
            del daemon.program_environment["LD_PRELOAD"]
            daemon.restart()


def clock(daemon: HostDaemon) -> int:
    return parse_rfc3339(daemon.http("GET", "/info").json()["SystemTime"]) // 10**9


def restarted_and_updated(where: list[HostDaemon], by: HostDaemon) -> None:
    """Tasks on these hosts that end are replaced a second later, and an update goes on and comes to its end."""
    for daemon in where:
        by.docker("node", "update", "--label-add", "clock=wrong", own(daemon)["NodeID"])
    pace = ("--restart-delay", "1s", "--update-delay", "1s", "--update-monitor", "1s")
    place = ("--constraint", "node.labels.clock==wrong", "--replicas-max-per-node", "1", "--replicas", str(len(where)))
    by.docker("service", "create", *SLEEPER, *pace, *place, "--name", "paced", *PROGRAM)
    until(lambda: len(homes(by, "paced")) == len(where), "its tasks")
    old = {daemon.where.name: of_service(daemon, "paced") for daemon in where}
    for daemon in where:
        daemon.docker("kill", *old[daemon.where.name])

    def replaced() -> bool:
        found = {daemon.where.name: of_service(daemon, "paced") for daemon in where}
        return len(homes(by, "paced")) == len(where) and all(found[name] not in ([], old[name]) for name in found)

    until(replaced, "others in their place")
    again(by, "paced")
    until(lambda: updated(by, "paced"), "the end of the update")
    by.docker("service", "rm", "paced")
    until(lambda: not any(of_service(daemon, "paced") for daemon in where), "its end")


def test_most_managers_are_lost(nodes: Nodes) -> None:
    first, *lost = nodes.managers
    before = nodes.containers()
    first.docker("secret", "create", "word", "-", input="kept")
    first.docker("swarm", "update", "--autolock")
    key = first.docker("swarm", "unlock-key", "-q").stdout.strip()
    for daemon in lost:
        daemon.kill9()
        os.kill(member(daemon), signal.SIGKILL)
    until(lambda: refused(first), "that it cannot be asked, and why")
    anew = ("swarm", "init", "--force-new-cluster", "--advertise-addr", first.where.address)
    first.restart()
    assert "needs to be unlocked" in first.docker(*anew, check=False).stderr
    first.docker("swarm", "unlock", input=key + "\n")
    first.docker(*anew)
    first.docker("swarm", "update", "--autolock=false")
    assert [service["Spec"]["Name"] for service in first.http("GET", "/services").json()] == ["web"]
    assert [secret["Spec"]["Name"] for secret in first.http("GET", "/secrets").json()] == ["word"]
    roles = sorted(node["Spec"]["Role"] for node in nodes_of(first).values())
    assert roles == ["manager", *["worker"] * 4]
    for daemon in (first, *nodes.workers):
        pinned("still-there", daemon, first)
        assert running(daemon) >= before[daemon.where.name], "nothing was stopped that was fine"
    for daemon in lost:
        daemon.start()
        daemon.docker("swarm", "leave", "--force")
        assert not member(daemon) and not running(daemon)
    for id in set(nodes_of(first)) - {own(daemon)["NodeID"] for daemon in (first, *nodes.workers)}:
        first.docker("node", "rm", "--force", id)
    assert nodes.join(lost[0]) == "This node joined a swarm as a manager."
    until(lambda: states(lost[0]) == ["ready"] * (SIZE - 1), "that it knows all")
    first.docker("secret", "rm", "word")
