"""Backup and restore of a whole swarm, with `husk swarm backup` and `restore`: real daemons on hosts of their own."""

import json
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.daemon import Daemon
from tests.support.etcd import Etcd
from tests.support.hosts import HostDaemon, Hosts
from tests.support.husk import command as husk_command
from tests.support.husk import environment, husk
from tests.support.waiting import until

SLEEPER = ("--detach", "--no-resolve-image", "--stop-grace-period", "0s", "--restart-delay", "0s")
SAYS = ("busybox", "sh", "-c", "cat /run/secrets/word; echo; exec sleep 600")
PASSPHRASE = "correct horse battery"


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with Hosts(3) as made:
        yield made


def token(daemon: HostDaemon, role: str) -> str:
    return daemon.docker("swarm", "join-token", "-q", role).stdout.strip()


def join(daemon: HostDaemon, by: HostDaemon, role: str) -> None:
    daemon.docker("swarm", "join", "--token", token(by, role), f"{by.where.address}:2377")


def own(daemon: Daemon) -> str:
    return str(daemon.http("GET", "/info").json()["Swarm"]["NodeID"])


def tasks(daemon: Daemon, name: str) -> list[dict[str, Any]]:
    """Those that are wanted, and run."""
    filters = quote(json.dumps({"service": [name], "desired-state": ["running"]}))
    answer = daemon.http("GET", f"/tasks?filters={filters}")
    found: list[dict[str, Any]] = answer.json() if answer.status == 200 else []
    return [task for task in found if task["Status"]["State"] == "running"]


def states(daemon: HostDaemon) -> dict[str, str]:
    return {node["ID"]: node["Status"]["State"] for node in daemon.http("GET", "/nodes").json()}


def running(daemon: Daemon) -> set[str]:
    return {container["Id"] for container in daemon.http("GET", "/containers/json").json()}


def lose(hosts: Hosts, *daemons: HostDaemon) -> None:
    """Nothing is left of these, and nobody hears of it."""
    for daemon in daemons:
        hosts.isolate(daemon.where)
    refused = husk(daemons[0], "swarm", "backup", "--passphrase-file", "-", "/nosuch", input=PASSPHRASE, code=1)
    assert "lost the majority" in refused.stderr
    for daemon in daemons:
        daemon.docker("swarm", "leave", "--force")
        assert daemon.close() == []
    hosts.mend()


def backup(daemon: Daemon, file: Path) -> None:
    husk(daemon, "swarm", "backup", "--passphrase-file", "-", str(file), input=PASSPHRASE)


def restore(daemon: Daemon, file: Path, *options: str, code: int = 0, word: str = PASSPHRASE) -> str:
    done = husk(daemon, "swarm", "restore", "--passphrase-file", "-", *options, str(file), input=word, code=code)
    return done.stderr if code else done.stdout


def test_all_managers_are_lost_and_the_swarm_comes_back(hosts: Hosts, tmp_path: Path) -> None:
    first, second, worker = (host.daemon() for host in hosts)
    first.docker("swarm", "init", "--advertise-addr", hosts[0].address)
    join(second, first, "manager")
    join(worker, first, "worker")
    ids = [own(daemon) for daemon in (first, second, worker)]
    first.docker("network", "create", "--driver", "overlay", "--attachable", "net")
    first.docker("secret", "create", "word", "-", input="told before")
    web = ("--name", "web", "--replicas", "3", "--secret", "word", "--network", "net", "--publish", "8080:80")
    second.docker("service", "create", *SLEEPER, *web, *SAYS)
    until(lambda: sorted(task["NodeID"] for task in tasks(first, "web")) == sorted(ids), "a task on each")
    before = first.http("GET", "/swarm").json()
    address = first.docker("service", "inspect", "-f", "{{json .Endpoint.VirtualIPs}}", "web").stdout
    [at_worker] = running(worker)
    backup(second, tmp_path / "swarm")  # any manager
    assert (tmp_path / "swarm").stat().st_mode & 0o777 == 0o600
    # What came after the backup is not in it.
    first.docker("service", "create", *SLEEPER, "--name", "later", "--mode", "global", *SAYS[:1], "sleep", "600")
    until(lambda: len(tasks(first, "later")) == 3, "a later service")
    lose(hosts, first, second)
    assert at_worker in running(worker)

    again = hosts[1].daemon()  # at the address of the one that made the backup
    assert "manager of the swarm now" in restore(again, tmp_path / "swarm")
    assert own(again) == ids[1]
    until(lambda: states(again) == {ids[0]: "down", ids[1]: "ready", ids[2]: "ready"}, "the worker comes back")
    until(lambda: {task["NodeID"] for task in tasks(again, "web")} == set(ids[1:]), "tasks on both")
    until(lambda: len(tasks(again, "web")) == 3 and len(running(again)) + len(running(worker)) == 3, "those wanted run")
    assert at_worker in running(worker), "the worker's task was taken over"
    after = again.http("GET", "/swarm").json()
    assert all(after[field] == before[field] for field in ("ID", "CreatedAt", "JoinTokens", "TLSInfo", "Spec"))
    assert again.docker("service", "ls", "--format", "{{.Name}}").stdout.split() == ["web"]
    assert again.docker("service", "inspect", "-f", "{{json .Endpoint.VirtualIPs}}", "web").stdout == address
    for container in running(again):
        until(lambda: again.docker("logs", container).stdout == "told before\n", "the secret is in its task")  # noqa: B023
    # Names and packets, from the restored manager to the task that was on the worker all the time.
    [task] = [task for task in tasks(again, "web") if task["Status"]["ContainerStatus"]["ContainerID"] == at_worker]
    ping = ("run", "--rm", "--network", "net", "busybox", "ping", "-c1", "-W1", f"web.{task['Slot']}.{task['ID']}")
    until(lambda: again.docker(*ping, check=False).returncode == 0, "an answer of the worker's task")

    # A new manager joins, and the swarm goes on.
    third = hosts[0].daemon()
    join(third, again, "manager")
    again.docker("node", "rm", ids[0])
    again.docker("service", "scale", "--detach", "web=4")
    until(lambda: len(tasks(third, "web")) == 4, "the new manager sees four tasks")
    for daemon in (worker, third, again):
        daemon.docker("swarm", "leave", "--force")


def test_a_restore_that_is_killed_left_nothing_or_all(tmp_path: Path, chance: random.Random) -> None:
    with Daemon() as daemon:
        daemon.docker("swarm", "init", "--advertise-addr", "127.0.0.1")
        daemon.docker("service", "create", *SLEEPER, "--name", "web", *SAYS[:1], "sleep", "600")
        backup(daemon, tmp_path / "swarm")
        said = restore(daemon, tmp_path / "swarm", code=1)
        assert "already part of a swarm" in said
        daemon.docker("swarm", "leave", "--force")
        assert "not its passphrase" in restore(daemon, tmp_path / "swarm", code=1, word="another one")
        for _ in range(4):
            command = ["swarm", "restore", "--passphrase-file", str(tmp_path / "word"), str(tmp_path / "swarm")]
            (tmp_path / "word").write_text(PASSPHRASE)
            with subprocess.Popen(
                husk_command(*command), env=environment(daemon), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            ):
                time.sleep(chance.uniform(0.2, 0.7))  # whatever it has come to by then
                daemon.kill9()
            daemon.start()
            state = daemon.http("GET", "/info").json()["Swarm"]["LocalNodeState"]
            assert state in ("inactive", "active")
            if state == "active":
                assert daemon.docker("service", "ls", "--format", "{{.Name}}").stdout.split() == ["web"]
                daemon.docker("swarm", "leave", "--force")
            assert not list(daemon.config.data_root.glob("swarm.*")), "no keys are left"
        restore(daemon, tmp_path / "swarm")
        until(lambda: len(tasks(daemon, "web")) == 1, "its task")
        daemon.docker("swarm", "leave", "--force")


def test_from_one_etcd_that_exists_to_another(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with Etcd(tmp_path / "one") as one, Etcd(tmp_path / "two") as two:
        with Daemon("--cluster-store", one.address) as daemon:
            daemon.docker("swarm", "init", "--advertise-addr", "127.0.0.1")
            daemon.docker("config", "create", "page", "-", input="hello")
            daemon.docker("service", "create", *SLEEPER, "--name", "web", "--config", "page", *SAYS[:1], "sleep", "600")
            backup(daemon, tmp_path / "swarm")
            until(lambda: len(tasks(daemon, "web")) == 1, "its task")
            daemon.docker("swarm", "leave", "--force")
        with Daemon("--cluster-store", two.address) as daemon:
            restore(daemon, tmp_path / "swarm")
            until(lambda: len(tasks(daemon, "web")) == 1, "its task again")
            [container] = running(daemon)
            assert daemon.docker("exec", container, "cat", "/page").stdout == "hello"
            daemon.restart()
            until(lambda: len(tasks(daemon, "web")) == 1, "its task after a restart")
            assert running(daemon) == {container}
            daemon.docker("swarm", "leave", "--force")
