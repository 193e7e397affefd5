"""`kill -9` of the daemon, at any moment: containers run on, nothing acknowledged is lost, the next start tidies up.

Whatever a test leaves, the `fresh_daemon` fixture finds: processes, mounts, interfaces, firewall tables, cgroups.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from husk.kernel import process
from tests.support.daemon import Daemon
from tests.support.fake_registry import FakeRegistry, Stall
from tests.support.images import settled, stored
from tests.support.registry import make_image, tar_of
from tests.support.waiting import until

COUNT = "n=0; while :; do n=$((n+1)); echo $n; sleep 0.02; done"


def inspect(daemon: Daemon, container: str) -> dict[str, Any]:
    return json.loads(daemon.docker("inspect", container).stdout)[0]


def state(daemon: Daemon, container: str) -> dict[str, Any]:
    return inspect(daemon, container)["State"]


def crash(daemon: Daemon) -> None:
    daemon.kill9()
    daemon.start()


def test_running_containers_run_on_with_their_logs(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    container = daemon.docker("run", "-d", "--name", "counter", "busybox", "sh", "-c", COUNT).stdout.strip()
    before = inspect(daemon, container)
    daemon.kill9()
    # It goes on counting while nobody is there.
    log = daemon.config.data_root / "containers" / container / "container.log"
    size = log.stat().st_size
    until(lambda: log.stat().st_size > size + 200, "the container writes on")
    daemon.start()
    after = inspect(daemon, container)
    for key in ("Pid", "StartedAt", "Status"):
        assert after["State"][key] == before["State"][key]
    assert after["NetworkSettings"]["Networks"] == before["NetworkSettings"]["Networks"]
    with daemon.docker_process("logs", "-f", "counter") as follower, daemon.docker_process("wait", "counter") as waiter:
        assert follower.stdout is not None and waiter.stdout is not None
        assert follower.stdout.readline() == b"1\n"
        daemon.docker("stop", "-t", "0", "counter")
        rest = follower.stdout.read().split()
        assert waiter.stdout.read() == b"137\n"
    assert [int(line) for line in rest] == list(range(2, len(rest) + 2)), "no line is lost, none twice"
    daemon.docker("rm", "counter")


def test_an_exit_while_the_daemon_was_away(fresh_daemon: Daemon, tmp_path: Path) -> None:
    daemon = fresh_daemon
    gate = tmp_path / "gate"
    script = "while [ ! -e /gate/gate ]; do sleep 0.02; done; echo last words; exit 7"
    options = ("-v", f"{tmp_path}:/gate")
    kept = daemon.docker("run", "-d", *options, "busybox", "sh", "-c", script).stdout.strip()
    gone = daemon.docker("run", "-d", "--rm", *options, "busybox", "sh", "-c", script).stdout.strip()
    pids = [state(daemon, container)["Pid"] for container in (kept, gone)]
    daemon.kill9()
    gate.touch()
    until(lambda: not any(process.start_time(pid) for pid in pids), "both end")
    ended = time.time()
    daemon.start()
    shown = state(daemon, kept)
    assert (shown["Status"], shown["ExitCode"], shown["Pid"], shown["Running"]) == ("exited", 7, 0, False)
    assert shown["FinishedAt"] <= time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ended + 1))
    assert daemon.docker("logs", kept).stdout == "last words\n"
    assert daemon.docker("wait", kept).stdout == "7\n"
    assert daemon.http("GET", f"/containers/{gone}/json").status == 404, "--rm holds over a crash"
    gate.unlink()
    daemon.docker("start", kept)
    assert state(daemon, kept)["Running"]


def test_attach_and_input_work_after_a_crash(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    daemon.docker("run", "-di", "--name", "cat", "busybox", "cat")
    crash(daemon)
    with daemon.docker_process("attach", "--sig-proxy=false", "cat") as client:
        assert client.stdin is not None and client.stdout is not None
        client.stdin.write(b"are you there?\n")
        client.stdin.flush()
        assert client.stdout.readline() == b"are you there?\n"
        daemon.docker("kill", "cat")
        assert client.wait(20) == 137


def test_a_paused_container_is_still_paused(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    daemon.docker("run", "-d", "--name", "frozen", "busybox", "sleep", "600")
    daemon.docker("pause", "frozen")
    crash(daemon)
    assert state(daemon, "frozen")["Status"] == "paused"
    daemon.docker("unpause", "frozen")
    daemon.docker("stop", "-t", "0", "frozen")


def test_sigterm_leaves_containers_running(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "600")
    pid = state(daemon, "box")["Pid"]
    assert daemon.stop() == 0
    assert os.path.exists(f"/proc/{pid}")
    daemon.start()
    assert state(daemon, "box")["Pid"] == pid
    assert daemon.docker("run", "--rm", "busybox", "echo", "hi").stdout == "hi\n"


def test_restart_policies_over_a_crash_of_everything(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    for policy in ("always", "unless-stopped", "on-failure", "no"):
        daemon.docker("run", "-d", "--restart", policy, "--name", policy, "busybox", "sleep", "600")
        daemon.docker("run", "-d", "--restart", policy, "--name", f"{policy}-stopped", "busybox", "sleep", "600")
        daemon.docker("stop", "-t", "0", f"{policy}-stopped")
    pids = [state(daemon, policy)["Pid"] for policy in ("always", "unless-stopped", "on-failure", "no")]
    daemon.kill9()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    until(lambda: not any(process.start_time(pid) for pid in pids), "all end")
    daemon.start()
    expected = {"always", "unless-stopped", "on-failure", "always-stopped"}
    until(lambda: set(daemon.docker("ps", "--format", "{{.Names}}").stdout.split()) == expected, f"{expected} run")
    assert state(daemon, "no")["ExitCode"] == 137
    # And over a clean restart with all of them stopped by hand.
    daemon.docker("stop", "-t", "0", *expected)
    daemon.restart()
    until(lambda: daemon.docker("ps", "--format", "{{.Names}}").stdout.split(), "`always` means always")
    running = {"always", "always-stopped"}
    until(lambda: set(daemon.docker("ps", "--format", "{{.Names}}").stdout.split()) == running, f"{running} run")


def monitor_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_killed_monitor_ends_its_container(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    daemon.docker("run", "-d", "--name", "box", "busybox", "sh", "-c", "sleep 600 & sleep 600")
    pid = state(daemon, "box")["Pid"]
    monitor = monitor_of(pid)
    assert "conmon" in Path(f"/proc/{monitor}/comm").read_text()
    os.kill(monitor, signal.SIGKILL)
    until(lambda: state(daemon, "box")["Status"] == "exited", "it is seen")
    shown = state(daemon, "box")
    assert (shown["ExitCode"], shown["Pid"]) == (137, 0)
    assert "monitor" in shown["Error"]
    assert process.start_time(pid) is None, "what nobody watches does not live on"
    assert daemon.docker("start", "box").returncode == 0


def test_a_monitor_killed_while_the_daemon_was_away(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "600")
    pid = state(daemon, "box")["Pid"]
    monitor = monitor_of(pid)
    daemon.kill9()
    os.kill(monitor, signal.SIGKILL)
    daemon.start()
    shown = state(daemon, "box")
    assert shown["Status"] == "exited" and shown["ExitCode"] != 0
    assert process.start_time(pid) is None, "what nobody watches does not live on"
    daemon.docker("rm", "box")


# -- in the middle of something ----------------------------------------------------------------------------------------


async def test_in_the_middle_of_a_pull(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    before = settled(daemon)
    image = make_image([tar_of({f"file{n}": os.urandom(100_000)}) for n in range(3)])
    async with FakeRegistry() as fake:
        fake.add("app", "1", image)
        stall = Stall(50_000)
        fake.faults[image.layer_digests[2]] = [stall]
        with daemon.docker_process("pull", f"{fake.host}/app:1") as client:
            await asyncio.wait_for(stall.reached.wait(), 20)
            layers = daemon.config.data_root / "layers/l"
            await asyncio.to_thread(until, lambda: len(os.listdir(layers)) == 4, "the others are there")
            daemon.kill9()
            await asyncio.to_thread(client.communicate)
        await asyncio.to_thread(daemon.start)
        await asyncio.to_thread(until, lambda: stored(daemon) == before, "nothing of the pull is left")
        done = await asyncio.to_thread(daemon.docker, "pull", f"{fake.host}/app:1")
        assert "Status: Downloaded newer image" in done.stdout


def at_random(daemon: Daemon, chance: random.Random, work: Callable[[int], object], threads: int = 4) -> None:
    """Run `work` over and over in threads, and kill the daemon in the middle of it."""
    over = threading.Event()
    rounds = [0]

    def repeat(number: int) -> None:
        while not over.is_set():
            with contextlib.suppress(OSError, HTTPException, subprocess.SubprocessError):
                work(number)
            rounds[0] += 1

    workers = [threading.Thread(daemon=True, target=repeat, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    try:
        until(lambda: rounds[0] >= threads, "the work is under way")
        threading.Event().wait(chance.uniform(0, 0.2))
        daemon.kill9()
    finally:
        over.set()
        for worker in workers:
            worker.join()


def containers(daemon: Daemon) -> list[dict[str, Any]]:
    return daemon.http("GET", "/containers/json?all=1").json()


def nothing_without_an_owner(daemon: Daemon) -> None:
    """Directories, bundles, sandboxes and cgroups exist only for containers that do."""
    known = {container["Id"] for container in containers(daemon)}
    running = {container["Id"] for container in containers(daemon) if container["State"] == "running"}
    config = daemon.config
    assert set(os.listdir(config.data_root / "containers")) == known
    until(lambda: set(os.listdir(config.exec_root / "containers")) == running, "bundles belong to what runs")
    mounts = Path("/proc/self/mounts").read_text()
    mounted = {name for name in known if f"{config.data_root}/containers/{name}/rootfs " in mounts}
    assert mounted == running
    monitors = {
        command.split(b"--cid\0")[1].split(b"\0")[0].decode()
        for command in commands()
        if b"--cid\0" in command and os.fsencode(config.exec_root) + b"/" in command
    }
    assert monitors == running


def commands() -> list[bytes]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            with contextlib.suppress(OSError):
                found.append(Path("/proc", entry, "cmdline").read_bytes())
    return found


@pytest.mark.parametrize("attempt", range(3))
def test_in_the_middle_of_many_starts(fresh_daemon: Daemon, chance: random.Random, attempt: int) -> None:
    daemon = fresh_daemon
    acknowledged: set[str] = set()

    def run(number: int) -> None:
        made = daemon.http("POST", "/containers/create", {"Image": "busybox", "Cmd": ["sleep", "600"]})
        name = made.json()["Id"]
        if daemon.http("POST", f"/containers/{name}/start").status == 204:
            acknowledged.add(name)

    at_random(daemon, chance, run)
    daemon.start()
    status = {container["Id"]: container["State"] for container in containers(daemon)}
    for name in acknowledged:
        assert status[name] == "running", "what was acknowledged runs"
    nothing_without_an_owner(daemon)
    for name in status:
        daemon.http("POST", f"/containers/{name}/start")
    assert {container["State"] for container in containers(daemon)} == {"running"}


@pytest.mark.parametrize("attempt", range(2))
def test_in_the_middle_of_removals(fresh_daemon: Daemon, chance: random.Random, attempt: int) -> None:
    daemon = fresh_daemon
    removed: set[str] = set()

    def come_and_go(number: int) -> None:
        made = daemon.http("POST", "/containers/create", {"Image": "busybox", "Cmd": ["sleep", "600"]})
        name = made.json()["Id"]
        daemon.http("POST", f"/containers/{name}/start")
        if daemon.http("DELETE", f"/containers/{name}?force=1").status == 204:
            removed.add(name)

    at_random(daemon, chance, come_and_go)
    daemon.start()
    assert not removed & {container["Id"] for container in containers(daemon)}
    nothing_without_an_owner(daemon)


@pytest.mark.parametrize("attempt", range(2))
def test_in_the_middle_of_commits(fresh_daemon: Daemon, chance: random.Random, attempt: int) -> None:
    daemon = fresh_daemon
    before = settled(daemon)
    script = "head -c 3000000 /dev/urandom > /noise; echo done; sleep 600"
    container = daemon.docker("run", "-d", "busybox", "sh", "-c", script).stdout.strip()
    until(lambda: daemon.docker("logs", container).stdout == "done\n", "there is something to commit")
    made: set[str] = set()

    def commit(number: int) -> None:
        answer = daemon.http("POST", f"/commit?container={container}&repo=c{number}&pause={number % 2}")
        if answer.status == 201:
            made.add(answer.json()["Id"])

    at_random(daemon, chance, commit, threads=2)
    daemon.start()
    # The daemon was killed while it kept the container paused, perhaps.
    assert state(daemon, container)["Status"] == "running"
    images = set(daemon.docker("images", "-aq", "--no-trunc").stdout.split())
    assert made <= images
    for image in images - before.images:
        assert daemon.docker("run", "--rm", image, "wc", "-c", "/noise").stdout == "3000000 /noise\n"
        daemon.docker("rmi", "-f", image)
    daemon.docker("rm", "-f", container)
    until(lambda: stored(daemon) == before, "nothing of the commits is left")
