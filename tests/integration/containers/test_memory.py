"""A container that runs out of memory: what its state, its events and its exit code tell."""

import json
import subprocess
import time
from pathlib import Path

from tests.support.daemon import Daemon
from tests.support.waiting import until

# It keeps what may be the last line, and this line never ends.
EAT = "tail /dev/zero"
LIMIT = ("-m", "16m", "--memory-swap", "16m")


def state(daemon: Daemon, name: str) -> dict[str, object]:
    return dict(json.loads(daemon.docker("inspect", name).stdout)[0]["State"])


def events(daemon: Daemon, since: float) -> list[str]:
    done = daemon.docker(
        "events", "--since", f"{since:.6f}", "--until", f"{time.time():.6f}", "--format", "{{.Action}}",
        "--filter", "type=container",
    )  # fmt: skip
    return done.stdout.split()


def test_the_first_process_is_killed(daemon: Daemon) -> None:
    begun = time.time()
    for n in range(5):
        done = daemon.docker("run", "--name", f"eater{n}", *LIMIT, "busybox", "tail", "/dev/zero", check=False)
        assert done.returncode == 137
        found = state(daemon, f"eater{n}")
        assert (found["OOMKilled"], found["ExitCode"], found["Status"]) == (True, 137, "exited")
    actions = events(daemon, begun)
    assert actions.count("oom") == 5
    assert actions.index("oom") < actions.index("die")


def test_a_container_that_survives_it_says_so_at_once(daemon: Daemon) -> None:
    begun = time.time()
    daemon.docker("run", "-d", "--name", "survivor", *LIMIT, "busybox", "sh", "-c", f"{EAT}; echo gone on; sleep 600")
    until(lambda: state(daemon, "survivor")["OOMKilled"], "the kill is seen")
    assert state(daemon, "survivor")["Running"]
    assert "oom" in events(daemon, begun) and "die" not in events(daemon, begun)
    until(lambda: daemon.docker("logs", "survivor").stdout == "gone on\n", "it goes on")
    daemon.docker("kill", "survivor")
    assert state(daemon, "survivor")["OOMKilled"] is True
    assert events(daemon, begun).count("oom") == 1


def test_a_restart_begins_anew(daemon: Daemon) -> None:
    script = f"test -e /once && exec sleep 600; touch /once; {EAT}"
    daemon.docker("run", "--name", "box", *LIMIT, "busybox", "sh", "-c", script, check=False)
    assert state(daemon, "box")["OOMKilled"] is True
    daemon.docker("start", "box")
    assert state(daemon, "box")["OOMKilled"] is False


def test_other_ends_are_no_lack_of_memory(daemon: Daemon) -> None:
    daemon.docker("run", "--name", "box", *LIMIT, "busybox", "sh", "-c", "kill -9 $$", check=False)
    assert state(daemon, "box")["OOMKilled"] is False


def test_what_happens_while_no_daemon_runs_is_seen_later(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    script = f"while ! test -e /go; do sleep 0.05; done; {EAT}; touch /done; sleep 600"
    daemon.docker("run", "-d", "--name", "box", *LIMIT, "busybox", "sh", "-c", script)
    merged = json.loads(daemon.docker("inspect", "box").stdout)[0]["GraphDriver"]["Data"]["MergedDir"]
    daemon.kill9()
    subprocess.run(["touch", f"{merged}/go"], check=True)
    until(lambda: subprocess.run(["test", "-e", f"{merged}/done"]).returncode == 0, "memory has run out")
    daemon.start()
    until(lambda: state(daemon, "box")["OOMKilled"], "the kill is seen")
    assert state(daemon, "box")["Running"]


def test_without_the_killer_nothing_is_killed(daemon: Daemon) -> None:
    warned = daemon.docker("run", "-d", "--oom-kill-disable", "--name", "box", *LIMIT, "busybox", "sleep", "600")
    if "OomKillDisable discarded" in warned.stderr:
        return  # cgroup v2 has no such thing
    group = daemon.config.cgroup_parent + "/" + warned.stdout.strip()
    control = f"/sys/fs/cgroup/memory{group}/memory.oom_control"
    assert "oom_kill_disable 1" in Path(control).read_text()
