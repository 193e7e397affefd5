"""`husk lab`: hosts on this machine that are gone without a trace afterwards, however they ended."""

import json
import os
import random
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.cli.lab.layout import Lab, planned
from husk.config import Config
from husk.kernel import cgroups, process
from tests.support.husk import command
from tests.support.waiting import until

_SOURCES = Path(__file__).resolve().parents[3] / "src"


def typed(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(_SOURCES)}
    return subprocess.run(command(*words), capture_output=True, text=True, timeout=120, env=environment)


def docker(lab: Lab, number: int, *words: str) -> str:
    where = lab.hosts[number - 1].docker_host
    done = subprocess.run(["docker", "-H", where, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def lab() -> Iterator[Lab]:
    made = planned(
        f"hklab{random.randint(0, 1 << 24)}", 2, f"10.{random.randint(200, 250)}.{random.randint(0, 255)}.0/24"
    )
    yield made
    typed("lab", "down", "--name", made.name)
    assert left(made) == []


def left(lab: Lab) -> list[str]:
    found = [str(path) for path in (lab.run, lab.data) if path.exists()]
    found += [name for _, name in socket.if_nameindex() if name == lab.name]
    found += [f"process {pid}" for pid in process.given([lab.mark])]
    for host in lab.hosts:
        parent = Config(data_root=host.data_root, exec_root=host.exec_root).cgroup_parent
        found += [
            f"cgroup {tree.path}{parent}" for tree in cgroups.hierarchies() if Path(f"{tree.path}{parent}").exists()
        ]
        found += [line for line in Path("/proc/mounts").read_text().splitlines() if str(lab.run) in line]
    return found


def test_a_swarm_on_hosts_of_a_lab(lab: Lab) -> None:
    made = typed("lab", "up", "2", "--name", lab.name, "--subnet", str(lab.subnet), "--json")
    assert made.returncode == 0, made.stderr
    assert [host["Answers"] for host in json.loads(made.stdout)] == [True, True]
    again = typed("lab", "up", "2", "--name", lab.name, "--subnet", str(lab.subnet))
    assert again.returncode == 1 and "is up: end it" in again.stderr
    first = str(lab.hosts[0].address.ip)
    docker(lab, 1, "swarm", "init", "--advertise-addr", first)
    docker(lab, 2, "swarm", "join", "--token", docker(lab, 1, "swarm", "join-token", "-q", "worker"), first)
    assert sorted(docker(lab, 1, "node", "ls", "--format", "{{.Hostname}}").split()) == ["host1", "host2"]
    serve = ("sh", "-c", "hostname > /index.html; exec httpd -f -h /")
    what = ("--detach", "--no-resolve-image", "--mode", "global", "--publish", "8080:80", "busybox")
    docker(lab, 1, "service", "create", "--name", "web", *what, *serve)
    until(lambda: docker(lab, 1, "service", "ls", "--format", "{{.Replicas}}") == "2/2", "a task on each")
    # From this machine, by any of the hosts.
    for host in lab.hosts:
        socket.create_connection((str(host.address.ip), 8080), 10).close()
    # A daemon ends and another one goes on with what it left.
    before = docker(lab, 2, "ps", "-q")
    assert typed("lab", "stop", "host2", "--name", lab.name).returncode == 0
    assert "SIGTERM" in (said := (lab.run / "host2.log").read_text()) and "third time" not in said
    assert "down" in typed("lab", "ls", "--name", lab.name).stdout
    assert typed("lab", "start", "host2", "--name", lab.name).returncode == 0
    assert before and docker(lab, 2, "ps", "-q") == before
    assert "has no host host9" in typed("lab", "start", "host9", "--name", lab.name).stderr
    assert typed("lab", "down", "--name", lab.name).returncode == 0
    assert left(lab) == []
    assert "there is no lab" in typed("lab", "ls", "--name", lab.name).stderr


def test_nothing_is_left_of_one_that_was_killed(lab: Lab) -> None:
    assert typed("lab", "up", "1", "--name", lab.name, "--subnet", str(lab.subnet)).returncode == 0
    docker(lab, 1, "run", "-d", "busybox", "sleep", "600")
    [holder] = process.given([lab.mark])
    os.kill(holder, signal.SIGKILL)
    until(lambda: not any(name == lab.name for _, name in socket.if_nameindex()), "its network is gone")
    assert "has ended" in typed("lab", "start", "host1", "--name", lab.name).stderr
    assert f"{lab.hosts[0].name:<8}" in typed("lab", "ls", "--name", lab.name).stdout
    assert typed("lab", "down", "--name", lab.name).returncode == 0
    assert left(lab) == []
