"""Managers that join with nothing but a token: each a real daemon on a host of its own, with an etcd of its own."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from husk.storage.secrets import memory
from husk.swarm.membership.etcd_membership import CERTIFICATE, KEY, ROOT
from husk.swarm.state.etcd.certificates import CertificateFiles
from husk.swarm.state.etcd.members import Members
from husk.swarm.state.parts import MEMBER
from husk.text.endpoints import HostPort
from tests.support.client import CommandFailed
from tests.support.hosts import HostDaemon, Hosts
from tests.support.nodes import (
    PROGRAM,
    SLEEPER,
    Nodes,
    give_role,
    homes,
    member,
    node_state,
    nodes_of,
    of_service,
    own,
    running,
    states,
    trouble,
)
from tests.support.waiting import until

WEB = ("service", "create", *SLEEPER, "--name", "web", "--replicas", "2", *PROGRAM)


@pytest.fixture(scope="module")
def alone() -> Iterator[Nodes]:
    """Three daemons that are to be managers; the first test makes them a swarm."""
    # The last has an etcd at other ports.
    options = {2: {"arguments": ("--swarm-etcd-ports", "3379,3380")}}
    with Hosts(3) as hosts, Nodes(hosts, managers=3, options=options) as made:
        yield made


@pytest.fixture
def etcd_membership(alone: Nodes) -> Nodes:
    """The swarm of three managers, also for a test that runs without the first one."""
    if not nodes_of(alone.first):
        alone.form()
        alone.first.docker(*WEB)
        until(lambda: len(homes(alone.first, "web")) == 2, "two tasks")
        until(alone.settled, "that all know of all")
    return alone


def test_managers_join_while_tasks_run(alone: Nodes) -> None:
    one, two, three = alone.daemons
    one.docker("swarm", "init", "--advertise-addr", one.where.address)
    one.docker(*WEB)
    until(lambda: len(homes(one, "web")) == 2, "two tasks")
    before = running(one)
    one.docker("secret", "create", "word", "-", input="told by the first")
    assert not member(one)
    # A port that another program has: nothing is begun.
    with (
        one.where.inside(lambda: socket.create_server((one.where.address, 2380))),
        pytest.raises(CommandFailed, match=r"another program has 192\.0\.2\.1:2380 .* --swarm-etcd-ports"),
    ):
        alone.join(two)
    assert not member(one) and not (one.config.data_root / MEMBER).exists() and len(nodes_of(one)) == 1
    assert alone.join(two) == "This node joined a swarm as a manager."
    assert member(one) and member(two) and running(one) == before
    assert alone.join(three, by=two) == "This node joined a swarm as a manager."
    until(lambda: all(states(daemon) == ["ready"] * 3 for daemon in alone.daemons), "that all know of all")
    assert three.where.inside(lambda: socket.create_connection((three.where.address, 3379), 5).close()) is None
    assert running(one) == before, "nothing was stopped"
    # Any manager unseals what another sealed, and signs.
    here = own(three)["NodeID"]
    says = ("busybox", "sh", "-c", "cat /run/secrets/word; echo; exec sleep 600")
    constraint = ("--constraint", f"node.id=={here}")
    two.docker("service", "create", *SLEEPER, "--name", "says", "--secret", "word", *constraint, *says)
    until(lambda: homes(two, "says") == [here], "the task on the third")
    [container] = running(three)
    until(lambda: three.docker("logs", container).stdout == "told by the first\n", "the secret is in its task")
    two.docker("service", "rm", "says")
    until(lambda: not running(three), "its end")


def test_a_new_root_reaches_all_managers(etcd_membership: Nodes) -> None:
    """Also those whose cluster ports nobody has called."""
    before = etcd_membership.daemons[0].http("GET", "/swarm").json()["TLSInfo"]["TrustRoot"]
    etcd_membership.daemons[1].docker("swarm", "ca", "--rotate", "--detach", "--quiet")

    def replaced(daemon: HostDaemon) -> bool:
        told = daemon.http("GET", "/swarm").json()
        issuers = {node["Description"]["TLSInfo"]["TrustRoot"] for node in nodes_of(daemon).values()}
        return not told["RootRotationInProgress"] and before not in (told["TLSInfo"]["TrustRoot"], *issuers)

    until(lambda: all(map(replaced, etcd_membership.daemons)), "the new root on all")


def test_a_daemon_that_starts_again_finds_its_member_running(etcd_membership: Nodes) -> None:
    three = etcd_membership.daemons[2]
    pid = member(three)
    three.restart()
    until(partial(_sees, three), "that it is back")
    assert member(three) == pid


@pytest.mark.parametrize("daemon_dies", [False, True], ids=["by hand", "in an undo"])
def test_a_manager_whose_member_others_removed_brings_it_back(etcd_membership: Nodes, daemon_dies: bool) -> None:
    """As a daemon leaves it that dies while it undoes a promotion; or somebody, by hand."""
    one, _, three = etcd_membership.daemons
    before = running(three)
    if daemon_dies:
        three.kill9()
    one.where.inside(lambda: asyncio.run(_remove(one, three.where.address)))
    if daemon_dies:
        three.start()
    until(lambda: one.where.inside(lambda: asyncio.run(_votes(one, three.where.address))), "that it votes again")
    until(lambda: member(three) and not trouble(three), "that nothing is wrong")
    until(lambda: all(map(_sees, etcd_membership.daemons)), "that all see all")
    assert running(three) == before


async def _remove(by: HostDaemon, host: str) -> None:
    members = _members(by)
    try:
        [found] = [known for known in await members.listing() if known.peer.host == host]
        await members.remove(found)
    finally:
        await members.close()


async def _votes(by: HostDaemon, host: str) -> bool:
    members = _members(by)
    try:
        return any(known.peer.host == host and known.name and not known.learns for known in await members.listing())
    finally:
        await members.close()


def _members(by: HostDaemon) -> Members:
    """Those of the swarm's etcd, asked where this manager is."""
    directory = by.config.data_root / MEMBER
    files = CertificateFiles(*(directory / name for name in (ROOT, CERTIFICATE, KEY)))
    return Members.open([HostPort(by.where.address, 2379)], files)


def test_all_managers_have_the_same_lock(etcd_membership: Nodes) -> None:
    one, two, three = etcd_membership.daemons
    two.docker("swarm", "update", "--autolock")
    key = two.docker("swarm", "unlock-key", "-q").stdout.strip()
    until(
        lambda: all(not file(daemon, "key") and file(daemon, "lock") for daemon in etcd_membership.daemons),
        "that all have it",
    )
    assert one.docker("swarm", "unlock-key", "-q").stdout.strip() == key
    three.restart()
    assert own(three)["LocalNodeState"] == "locked" and three.http("GET", "/services").status == 503
    assert states(one) == ["ready"] * 3, "its member of etcd goes on"
    # Unlocked by others while it cannot read its key: the one that it knew last opens it.
    two.docker("swarm", "update", "--autolock=false")
    until(lambda: file(one, "key") and not file(one, "lock"), "that the first is unlocked")
    three.docker("swarm", "unlock", input=key + "\n")
    until(lambda: file(three, "key") and not file(three, "lock"), "that the third is, too")
    assert file(three, "key") == file(one, "key")
    until(partial(_sees, three), "that it sees all")


def test_with_autolock_no_disk_of_a_manager_speaks_for_it(etcd_membership: Nodes) -> None:
    one, two, three = etcd_membership.daemons
    two.docker("swarm", "update", "--autolock")
    unlock_key = two.docker("swarm", "unlock-key", "-q").stdout.strip()
    until(lambda: all(_is_sealed(daemon) for daemon in etcd_membership.daemons), "that the keys of all members are")
    for daemon in etcd_membership.daemons:
        key, disk = (daemon.config.data_root / MEMBER / KEY).read_bytes(), daemon.config.data_root
        files = [path for path in (disk / MEMBER).rglob("*") if path.is_file() and not path.is_symlink()]
        assert key.startswith(b"-----BEGIN") and not any(key in path.read_bytes() for path in files)
    pid = member(three)
    three.restart()
    assert member(three) == pid and own(three)["LocalNodeState"] == "locked", "a daemon alone ends no member"
    _boot(three)
    assert member(three) == 0 and own(three)["LocalNodeState"] == "locked"
    assert three.http("GET", "/_ping").headers["Swarm"] == "locked" and three.http("GET", "/services").status == 503
    assert not (three.config.data_root / MEMBER / KEY).exists()
    wrong = three.http("POST", "/swarm/unlock", {"UnlockKey": f"SWMKEY-1-{'A' * 43}"})
    assert wrong.status != 200 and member(three) == 0
    until(lambda: len(homes(one, "web")) == 2, "that the others go on")
    three.docker("swarm", "unlock", input=unlock_key + "\n")
    assert member(three) and _sees(three) and _is_sealed(three)
    until(etcd_membership.settled, "that all know of all")
    # Turned off while it is locked.
    _boot(three)
    two.docker("swarm", "update", "--autolock=false")
    until(lambda: not (one.config.data_root / MEMBER / KEY).is_symlink(), "that the first has its key as before")
    three.docker("swarm", "unlock", input=unlock_key + "\n")
    until(lambda: not _is_sealed(three) and file(three, "key"), "that the third has it, too")
    until(
        lambda: not any((daemon.config.exec_root / MEMBER).exists() for daemon in etcd_membership.daemons),
        "that none is in memory",
    )
    _boot(three)
    until(etcd_membership.settled, "that it needs no key any more")


def test_a_locked_manager_leaves_and_joins_again(etcd_membership: Nodes) -> None:
    one, _, three = etcd_membership.daemons
    one.docker("swarm", "update", "--autolock")
    until(lambda: _is_sealed(three), "that its key is")
    here = own(three)["NodeID"]
    _boot(three)
    refused = three.docker("swarm", "leave", check=False)
    assert refused.returncode != 0 and "locked" in refused.stderr
    three.docker("swarm", "leave", "--force")
    assert own(three)["LocalNodeState"] == "inactive" and not (three.config.data_root / MEMBER).exists()
    assert not file(three, "lock") and not file(three, "key") and not (three.config.exec_root / MEMBER).exists()
    until(lambda: node_state(one, here) == "down", "that it is missed")
    give_role(one, "demote", here)
    one.docker("node", "rm", "--force", here)
    one.docker("swarm", "update", "--autolock=false")
    etcd_membership.join(three)
    until(etcd_membership.settled, "that all know of all")
    there = ("--constraint", f"node.id=={own(three)['NodeID']}")
    one.docker("service", "create", *SLEEPER, "--name", "anew", *there, *PROGRAM)
    until(lambda: len(homes(one, "anew")) == 1, "that it has tasks again")
    one.docker("service", "rm", "anew")
    until(lambda: not of_service(three, "anew"), "its end")


def _is_sealed(daemon: HostDaemon) -> bool:
    """Tell if the key of its member is on no disk but sealed."""
    directory = daemon.config.data_root / MEMBER
    return (directory / KEY).is_symlink() and sorted(path.name for path in directory.glob("member.*")) == [
        "member.crt",
        KEY,
        "member.sealed",
    ]


def _boot(daemon: HostDaemon) -> None:
    """As far as its swarm goes: all processes end, and what is in memory does."""
    daemon.kill9()
    os.kill(member(daemon), signal.SIGKILL)
    until(lambda: not member(daemon), "the end of its member")
    memory.drop(daemon.config.exec_root / MEMBER)
    daemon.start()


def file(daemon: HostDaemon, name: str) -> bytes:
    """Return the content of swarm.key or swarm.lock; empty where it is not there."""
    path = daemon.config.data_root / f"swarm.{name}"
    return path.read_bytes() if path.exists() else b""


def test_a_manager_is_demoted_and_promoted(etcd_membership: Nodes) -> None:
    one, two, three = etcd_membership.daemons
    here = own(three)["NodeID"]
    one.docker("service", "create", *SLEEPER, "--name", "stays", "--constraint", f"node.id=={here}", *PROGRAM)
    until(lambda: homes(one, "stays") == [here], "a task there")
    before = running(three)
    give_role(one, "demote", here)
    until(lambda: not _controls(three, here) and not member(three), "that it is a worker")
    # The other managers hear of it on their own, and of nothing while their etcd elects another leader.
    until(lambda: all(_works(daemon, here) for daemon in (one, two)), "that the others know it as a worker")
    assert three.http("GET", "/nodes").status == 503
    assert before <= running(three)
    until(lambda: homes(one, "stays") == [here], "the same task")
    give_role(two, "promote", here)
    until(lambda: _controls(three, here) and member(three), "that it is a manager")
    until(partial(_sees, three), "that it sees all")
    until(lambda: homes(three, "stays") == [here], "the same task on the new manager")
    assert before <= running(three)
    three.docker("service", "rm", "stays")


def test_managers_that_are_all_demoted_by_each_other_at_once_leave_one(etcd_membership: Nodes) -> None:
    ids = {own(daemon)["NodeID"]: daemon for daemon in etcd_membership.daemons}
    orders = [(by, node) for by in etcd_membership.daemons for node, daemon in ids.items() if daemon is not by]
    with ThreadPoolExecutor(len(orders)) as pool:
        list(pool.map(lambda order: order[0].docker("node", "demote", order[1], check=False), orders))

    def managers() -> list[str]:
        told = [answer.json() for by in etcd_membership.daemons if (answer := by.http("GET", "/nodes")).status == 200]
        return [node["ID"] for node in told[0] if node["Spec"]["Role"] == "manager"] if told else []

    [last] = until(lambda: found if len(found := managers()) == 1 else [], "that all know who is left")
    others = {node: daemon for node, daemon in ids.items() if node != last}
    for node, daemon in others.items():
        until(lambda: not _controls(daemon, node) and not member(daemon), "that it is a worker")  # noqa: B023
    until(lambda: states(ids[last]) == ["ready"] * 3, "that all are ready")
    for node, daemon in others.items():
        give_role(ids[last], "promote", node)
        until(lambda: _controls(daemon, node) and member(daemon), "that it is a manager")  # noqa: B023
    until(lambda: all(map(_sees, etcd_membership.daemons)), "that all see all")


def _controls(daemon: HostDaemon, node: str) -> bool:
    """Tell if it is a manager. It is in the swarm all along."""
    told = own(daemon)
    assert (told["LocalNodeState"], told["NodeID"]) == ("active", node), told
    return bool(told["ControlAvailable"])


def _works(by: HostDaemon, node: str) -> bool:
    """Tell if this manager knows the node as a worker that is ready."""
    found = nodes_of(by).get(node)
    return found is not None and "ManagerStatus" not in found and found["Status"]["State"] == "ready"


def _sees(daemon: HostDaemon) -> bool:
    return states(daemon) == ["ready"] * 3


def test_a_manager_that_nobody_hears_leaves_all_the_same(etcd_membership: Nodes) -> None:
    two = etcd_membership.daemons[1]
    etcd_membership.hosts.isolate(etcd_membership.hosts[1])
    until(lambda: two.http("GET", "/services").status == 503, "that it is alone")
    two.docker("swarm", "leave", "--force")
    assert not member(two) and not running(two) and own(two)["LocalNodeState"] == "inactive"
    etcd_membership.hosts.mend()
