"""Small things that dockerd does and its own tests ask for."""

from pathlib import Path

import pytest

from husk.kernel import cgroups
from tests.support.cgroup_place import locate
from tests.support.daemon import Daemon
from tests.support.waiting import until


def value(daemon: Daemon, container: str, controller: str, name: str) -> str:
    identity = daemon.docker("inspect", "-f", "{{.Id}}", container).stdout.strip()
    directory = locate(f"{daemon.config.cgroup_parent}/{identity}", controller)
    assert directory is not None
    return (directory / name).read_text().strip()


def test_a_quota_is_taken_away_by_a_negative_one(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "box", "--cpu-quota", "20000", "busybox", "sleep", "1000")
    v2 = cgroups.detect() == "v2"
    name, before, after = ("cpu.max", "20000 100000", "max 100000") if v2 else ("cpu.cfs_quota_us", "20000", "-1")
    assert value(daemon, "box", "" if v2 else "cpu", name) == before
    daemon.docker("update", "--cpu-quota=-1", "box")
    assert value(daemon, "box", "" if v2 else "cpu", name) == after
    assert daemon.docker("inspect", "-f", "{{.HostConfig.CpuQuota}}", "box").stdout == "-1\n"
    daemon.docker("run", "--rm", "--cpu-quota=-1", "busybox", "true")


@pytest.mark.parametrize(
    ("words", "runs"), [("exec,noexec", False), ("noexec,exec", True), ("exec", True), ("", False)]
)
def test_of_exec_and_noexec_the_last_wins(daemon: Daemon, words: str, runs: bool):
    script = "cp /bin/busybox /x/echo && /x/echo ran"
    done = daemon.docker("run", "--rm", "--tmpfs", f"/x:{words}", "busybox", "sh", "-c", script, check=False)
    assert (done.stdout == "ran\n") == runs


@pytest.mark.parametrize("user", ["0", "12345"])
def test_an_empty_home_is_that_of_the_user(daemon: Daemon, user: str):
    home = {"0": "/root\n", "12345": "/\n"}[user]
    options = ["-e", "HOME=", "-u", user]
    assert daemon.docker("run", "--rm", *options, "busybox", "sh", "-c", "echo $HOME").stdout == home
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "1000")
    assert daemon.docker("exec", *options, "box", "sh", "-c", "echo $HOME").stdout == home


@pytest.mark.parametrize("mode", ["container", "container:"])
def test_the_network_of_a_container_without_a_name_is_refused(daemon: Daemon, mode: str):
    body = {"Image": "busybox", "Cmd": ["true"], "HostConfig": {"NetworkMode": mode}}
    answer = daemon.http("POST", "/containers/create", body)
    assert answer.status == 400
    assert answer.message == "invalid network mode: invalid container format container:<name|id>"


def test_writable_cgroups_needs_no_value(daemon: Daemon):
    """The docker command does not send it so; other clients do."""
    body = {"Image": "busybox", "Cmd": ["touch", "/sys/fs/cgroup"], "HostConfig": {"SecurityOpt": ["writable-cgroups"]}}
    answer = daemon.http("POST", "/containers/create?name=box", body)
    assert answer.status == 201, answer.body
    assert daemon.docker("start", "-a", "box").returncode == 0


def test_a_container_that_may_not_be_killed_for_memory_has_its_event(daemon: Daemon):
    if cgroups.detect() == "v2":
        pytest.skip("cgroup v2 cannot turn the killing off")
    limits = ["-m", "16m", "--memory-swap", "16m", "--oom-kill-disable"]
    # A process that is not killed waits for memory for as long as there is none.
    script = "x=a; while true; do x=$x$x$x$x; done"
    daemon.docker("run", "-d", "--name", "box", *limits, "busybox", "sh", "-c", script)
    until(lambda: "oom" in events_of(daemon, "box"), "the event of the lack of memory")
    assert daemon.docker("inspect", "-f", "{{.State.Running}} {{.State.OOMKilled}}", "box").stdout == "true true\n"


def events_of(daemon: Daemon, container: str) -> list[str]:
    wanted = ["--since", "1h", "--until", "0s", "--filter", f"container={container}", "--format", "{{.Action}}"]
    return daemon.docker("events", *wanted).stdout.split()


@pytest.mark.parametrize("propagation", ["private", "rprivate", "slave", "shared"])
@pytest.mark.parametrize("where", ["below", "itself", "above"])
def test_the_data_root_is_bound_only_so_that_it_can_be_let_go(daemon: Daemon, propagation: str, where: str):
    root = daemon.config.data_root
    source = {"below": root / "containers", "itself": root, "above": Path("/")}[where]
    body = {"Image": "busybox", "Cmd": ["true"], "HostConfig": {"Binds": [f"{source}:/x:{propagation}"]}}
    answer = daemon.http("POST", "/containers/create", body)
    assert answer.status == 400
    assert answer.message.startswith('invalid mount config: must use either propagation mode "rslave" or "rshared"')


def test_the_data_root_may_be_bound_without_saying_how(daemon: Daemon):
    daemon.docker("run", "--rm", "-v", f"{daemon.config.data_root}:/x", "busybox", "ls", "/x/containers")
