"""`docker compose` v2 against a real daemon: whole projects, as their users run them."""

import json
import os
import random
import re
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.support.compose import Project, require_compose
from tests.support.daemon import Daemon
from tests.support.waiting import until

# With an init, a container ends at once when it is told to: `sleep` as process 1 would ignore the signal.
SLEEPER = {"image": "busybox", "init": True, "command": "sleep 600"}


@pytest.fixture
def project(daemon: Daemon, tmp_path: Path) -> Iterator[Project]:
    require_compose()
    directory = tmp_path / "shop"
    directory.mkdir()
    project = Project(daemon, directory)
    yield project
    project.close()


def healthy(script: str) -> dict[str, Any]:
    return {"test": script, "interval": "100ms", "start_period": "10s", "start_interval": "100ms", "retries": 20}


def server(text: str) -> dict[str, Any]:
    """A service that answers with `text` on port 80."""
    script = f"echo {text} > /tmp/index.html; exec httpd -f -p 80 -h /tmp"
    return {"image": "busybox", "init": True, "command": ["sh", "-c", script]}


def free_ports(count: int) -> int:
    """The first of `count` consecutive ports of the loopback that nobody has."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            first = int(probe.getsockname()[1])
        taken = False
        for port in range(first, first + count):
            try:
                socket.create_server(("127.0.0.1", port)).close()
            except (OSError, OverflowError):
                taken = True
        if not taken:
            return first


def answer(port: int) -> str:
    """What the server on a port says; nothing while it is not there (yet)."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/", timeout=5) as response:
            return str(response.read().decode().strip())
    except (URLError, ConnectionError):
        return ""


def get(port: int) -> str:
    """What it says as soon as it is there: a published port is open before the server behind it."""
    return until(lambda: answer(port), f"port {port} answers")


def test_a_project_with_networks_volumes_and_healthy_dependencies(project: Project) -> None:
    port = free_ports(1)
    ready = {"condition": "service_healthy"}
    database = "sleep 0.3; touch /data/up; exec nc -ll -p 5432 -e cat /data/schema"
    project.write(
        {
            "services": {
                "web": {
                    **server("web"),
                    "networks": ["front"],
                    "ports": [f"127.0.0.1:{port}:80"],
                    "depends_on": {"api": ready},
                },
                "api": {
                    **server("api"),
                    "networks": {"front": None, "back": {"aliases": ["backend"]}},
                    "healthcheck": healthy("wget -q -O /dev/null http://127.0.0.1/"),
                    "depends_on": {"db": ready, "migrate": {"condition": "service_completed_successfully"}},
                },
                "migrate": {
                    "image": "busybox",
                    "command": "sh -c 'test -e /data/up && echo tables > /data/schema'",
                    "networks": ["back"],
                    "volumes": ["data:/data"],
                    "depends_on": {"db": ready},
                },
                "db": {
                    "image": "busybox",
                    "init": True,
                    "command": ["sh", "-c", database],
                    "networks": ["back"],
                    "volumes": ["data:/data"],
                    "healthcheck": healthy("test -e /data/up"),
                },
            },
            "networks": {"front": None, "back": {"internal": True}},
            "volumes": {"data": {"labels": {"of": "the shop"}}},
        }
    )
    project("up", "-d", "--wait")

    shown = project.services()
    states = {name: (one["State"], one["Health"], one["ExitCode"]) for name, one in shown.items()}
    assert states == {
        "web-1": ("running", "", 0),
        "api-1": ("running", "healthy", 0),
        "migrate-1": ("exited", "", 0),
        "db-1": ("running", "healthy", 0),
    }
    assert get(port) == "web"
    assert project.output("port", "web", "80") == f"127.0.0.1:{port}\n"
    # Everyone finds whom it shares a network with, by service name and alias, and nobody else.
    assert project.within("web", "wget -q -O- http://api/") == "api\n"
    assert project.within("api", "nc db 5432; wget -q -O- http://web/") == "tables\nweb\n"
    assert project.within("db", "wget -q -O- http://backend/") == "api\n"
    assert project("exec", "-T", "web", "nslookup", "db", check=False).returncode == 1
    address = project.within("db", "hostname -i").strip()
    assert project("exec", "-T", "web", "ping", "-c1", "-W1", address, check=False).returncode == 1
    assert project("exec", "-T", "api", "ping", "-c1", "-W1", address, check=False).returncode == 0

    # `down` keeps the volume, `down -v` does not.
    project("down")
    assert project.daemon.docker("volume", "ls", "-q", "--filter", "label=of=the shop").stdout == "shop_data\n"
    project("up", "-d", "--wait", "db")
    assert list(project.services()) == ["db-1"]
    assert project.within("db", "cat /data/schema") == "tables\n"
    project("down", "-v")
    project.close()


def test_a_dependency_that_fails_stops_the_rest(project: Project) -> None:
    check = {"test": "exit 1", "interval": "100ms", "retries": 2}
    project.write(
        {
            "services": {
                "ill": {**SLEEPER, "healthcheck": check},
                "failed": {"image": "busybox", "command": "sh -c 'exit 3'"},
                "first": {**SLEEPER, "depends_on": {"ill": {"condition": "service_healthy"}}},
                "second": {**SLEEPER, "depends_on": {"failed": {"condition": "service_completed_successfully"}}},
            }
        }
    )
    first = project("up", "-d", "first", check=False)
    assert first.returncode == 1
    assert "dependency failed to start: container shop-ill-1 is unhealthy" in first.stderr
    second = project("up", "-d", "second", check=False)
    assert second.returncode == 1
    assert 'service "failed" didn\'t complete successfully: exit 3' in second.stderr
    states = {name: one["State"] for name, one in project.services().items()}
    assert states == {"ill-1": "running", "failed-1": "exited", "first-1": "created", "second-1": "created"}


def test_scaling_over_a_range_of_ports(project: Project) -> None:
    port = free_ports(3)
    web = {
        "image": "busybox",
        "init": True,
        "command": ["sh", "-c", "hostname > /tmp/index.html; exec httpd -f -p 80 -h /tmp"],
        "ports": [f"127.0.0.1:{port}-{port + 2}:80"],
    }
    project.write({"services": {"web": web, "client": SLEEPER}})

    def answers() -> set[str]:
        return {get(number) for number in range(port, port + 3)}

    project("up", "-d", "--scale", "web=3")
    containers = {name: one for name, one in project.ids().items() if name.startswith("web")}
    assert sorted(containers) == ["web-1", "web-2", "web-3"]
    assert answers() == {number[:12] for number in containers.values()}
    # One name, three addresses.
    found = project.within("client", "nslookup web").partition("Name:")[2]
    assert len(set(re.findall(r"Address: (\S+)", found))) == 3
    crowded = project("up", "-d", "--scale", "web=4", check=False)
    assert crowded.returncode == 1 and "all ports are allocated" in crowded.stderr
    project("scale", "web=1")
    assert project.ids() == {"web-1": containers["web-1"], "client-1": project.ids()["client-1"]}
    assert [bool(answer(number)) for number in range(port, port + 3)].count(True) == 1
    project("scale", "web=3")
    assert len(answers()) == 3


def test_up_recreates_only_what_changed(project: Project) -> None:
    services: dict[str, Any] = {
        "changing": {**SLEEPER, "environment": {"VERSION": "1"}, "volumes": ["/kept"]},
        "staying": {**SLEEPER, "volumes": ["data:/data"], "labels": {"a": "b"}},
    }
    project.write({"services": services, "volumes": {"data": None}})
    project("up", "-d")
    before = project.ids()
    project.within("changing", "touch /kept/file /lost")
    said = project("up", "-d").stderr
    assert project.ids() == before and "Recreate" not in said

    services["changing"]["environment"]["VERSION"] = "2"
    services["new"] = SLEEPER
    project.write({"services": services, "volumes": {"data": None}})
    project("up", "-d")
    after = project.ids()
    assert sorted(after) == ["changing-1", "new-1", "staying-1"]
    assert after["staying-1"] == before["staying-1"] and after["changing-1"] != before["changing-1"]
    # The anonymous volume moves on with the service, what was written beside it does not.
    assert project.within("changing", "echo $VERSION; ls /kept; ls / | grep -c lost || true") == "2\nfile\n0\n"

    del services["new"]
    project.write({"services": services, "volumes": {"data": None}})
    assert "Found orphan containers ([shop-new-1])" in project("up", "-d").stderr
    project("up", "-d", "--remove-orphans")
    assert project.ids() == {name: number for name, number in after.items() if name != "new-1"}
    project("up", "-d", "--force-recreate", "staying")
    assert project.ids()["staying-1"] != after["staying-1"]
    project("down", "-v")
    # Compose names the anonymous volume to the second container; a named one is not the container's to take along.
    left = project.daemon.docker("volume", "ls", "-q").stdout.split()
    assert len(left) == 1 and len(left[0]) == 64
    assert left[0] in project.daemon.docker("volume", "prune", "-f").stdout
    project.close()


def test_stop_start_restart_pause_and_kill(project: Project) -> None:
    count = "echo started >> /runs; trap 'echo told; exit 0' TERM; while :; do sleep 0.05; done"
    project.write(
        {
            "services": {
                "app": {"image": "busybox", "command": ["sh", "-c", count], "depends_on": ["base"]},
                "base": SLEEPER,
            }
        }
    )

    def states() -> dict[str, str]:
        return {name: one["State"] for name, one in project.services().items()}

    def runs() -> int:
        return project.within("app", "cat /runs").count("started")

    project("up", "-d")
    ids = project.ids()
    until(lambda: runs() == 1, "it runs")
    project("stop")
    assert states() == {"app-1": "exited", "base-1": "exited"}
    assert project.output("logs", "--no-log-prefix", "app") == "told\n"
    assert project.output("ps").count("\n") == 1
    project("start")
    assert states() == {"app-1": "running", "base-1": "running"}
    until(lambda: runs() == 2, "it runs again")
    project("restart", "app")
    until(lambda: runs() == 3, "it runs a third time")
    project("pause", "base")
    assert states() == {"app-1": "running", "base-1": "paused"}
    project("unpause", "base")
    project("kill", "-s", "KILL", "app")
    until(lambda: states() == {"app-1": "exited", "base-1": "running"}, "only the one was killed")
    assert project.services()["app-1"]["ExitCode"] == 137
    assert project.ids() == ids
    project("rm", "--force", "--stop", "app")
    assert list(project.ids()) == ["base-1"]


def test_exec_run_and_cp(project: Project) -> None:
    service = {**SLEEPER, "environment": {"A": "1"}, "user": "33", "working_dir": "/tmp"}
    project.write({"services": {"app": {**service, "depends_on": ["base"], "scale": 2}, "base": SLEEPER}})

    # `run` starts what the service needs, and leaves nothing of its own.
    ran = project("run", "--rm", "-T", "-e", "B=2", "app", "sh", "-c", "echo $A $B; id -u; pwd; exit 4", check=False)
    assert (ran.returncode, ran.stdout) == (4, "1 2\n33\n/tmp\n")
    assert list(project.ids()) == ["base-1"]

    project("up", "-d")
    done = project("exec", "-T", "-e", "C=3", "-u", "0", "-w", "/", "app", "sh", "-c", "echo $A $C; id -u; pwd; exit 7",
                   check=False)  # fmt: skip
    assert (done.returncode, done.stdout) == (7, "1 3\n0\n/\n")
    names = {project.output("exec", "-T", "--index", str(index), "app", "hostname").strip() for index in (1, 2)}
    assert names == {project.ids()[f"app-{index}"][:12] for index in (1, 2)}
    missing = project("exec", "-T", "nobody", "true", check=False)
    assert missing.returncode == 1 and 'service "nobody" is not running' in missing.stderr

    (project.directory / "file").write_text("from outside\n")
    project("cp", "file", "app:/tmp/")
    assert project.within("app", "cat /tmp/file; echo back > /tmp/answer") == "from outside\n"
    project("cp", "--index", "1", "app:/tmp/answer", "returned")
    assert (project.directory / "returned").read_text() == "back\n"

    top = project.output("top", "base")
    assert "sleep 600" in top
    assert [image["Repository"] for image in json.loads(project.output("images", "base", "--format", "json"))] == [
        "busybox"
    ]


def test_logs_follow_all_services_until_they_end(project: Project) -> None:
    script = "n=0; while [ ! -e /tmp/end ]; do n=$((n+1)); echo line $n; sleep 0.05; done; echo the end"
    chatty = {"image": "busybox", "command": ["sh", "-c", script.replace("$", "$$")]}
    project.write({"services": {"one": chatty, "other": chatty}})
    project("up", "-d")
    lines: list[str] = []
    with project.process("logs", "--follow", "--no-color") as following:
        assert following.stdout is not None
        for line in following.stdout:
            lines.append(line)
            if sum("line 5" in seen for seen in lines) == 2:
                break
        for service in ("one", "other"):
            project("exec", "-T", service, "touch", "/tmp/end")
        lines += following.stdout
        assert following.wait(20) == 0
    for service in ("one", "other"):
        own = [line.split("|", 1)[1].strip() for line in lines if line.startswith(f"{service}-1 ")]
        assert own == [f"line {number}" for number in range(1, len(own))] + ["the end"]
    assert project.output("logs", "--tail", "1", "--no-log-prefix", "one") == "the end\n"
    stamped = project.output("logs", "--timestamps", "--no-log-prefix", "--tail", "1", "one")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z the end\n", stamped)


def test_up_in_the_foreground(project: Project) -> None:
    waiting = "trap 'echo leaving; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    project.write(
        {
            "services": {
                "job": {"image": "busybox", "command": "sh -c 'echo working; exit 5'", "depends_on": ["base"]},
                "base": {"image": "busybox", "command": ["sh", "-c", waiting]},
            }
        }
    )
    # The way of tests in CI: the status of one service is that of the command, and it stops the others.
    ended = project("up", "--exit-code-from", "job", "--no-color", check=False)
    assert ended.returncode == 5
    assert re.search(r"^job-1 +\| working$", ended.stdout, re.MULTILINE)
    assert {name: one["State"] for name, one in project.services().items()} == {"job-1": "exited", "base-1": "exited"}

    # And that of developers: Ctrl-C stops the project.
    with project.process("up", "--no-color", "base") as running:
        assert running.stdout is not None
        for line in running.stdout:
            if "| ready" in line:
                break
        os.killpg(running.pid, signal.SIGINT)
        running.stdout.read()
        assert running.wait(20) in (0, 130)
    assert project.output("logs", "--no-log-prefix", "base").splitlines()[-1] == "leaving"
    assert project.services()["base-1"]["State"] == "exited"


def test_env_files_variables_and_profiles(project: Project) -> None:
    (project.directory / ".env").write_text("TAG=latest\nGREETING=from dotenv\n")
    (project.directory / "app.env").write_text("FROM_FILE=yes\nOVERRIDDEN=file\n")
    project.write(
        {
            "services": {
                "app": {
                    "image": "busybox:${TAG:?}",
                    "init": True,
                    "command": "sleep 600",
                    "env_file": ["app.env", {"path": "absent.env", "required": False}],
                    "environment": {
                        "OVERRIDDEN": "compose",
                        "GREETING": "${GREETING}",
                        "DEFAULT": "${UNSET:-fallback}",
                    },
                },
                "debug": {**SLEEPER, "profiles": ["tools"]},
            }
        }
    )
    resolved = json.loads(project.output("config", "--format", "json"))
    assert resolved["services"]["app"]["image"] == "busybox:latest"
    assert project.output("config", "--services") == "app\n"
    assert sorted(project.output("--profile", "tools", "config", "--services").split()) == ["app", "debug"]

    project("up", "-d")
    assert list(project.services()) == ["app-1"]
    names = ("FROM_FILE", "OVERRIDDEN", "GREETING", "DEFAULT")
    seen = project.within("app", "; ".join(f"echo ${name}" for name in names))
    assert seen.splitlines() == ["yes", "compose", "from dotenv", "fallback"]

    app = project.ids()["app-1"]
    project("--profile", "tools", "up", "-d")
    assert sorted(project.services()) == ["app-1", "debug-1"]
    project("--profile", "tools", "stop", "debug")
    assert project.ids()["app-1"] == app
    project.variables["GREETING"] = "from the shell"
    project("up", "-d")
    assert project.ids()["app-1"] != app
    assert project.within("app", "echo $GREETING") == "from the shell\n"


def test_secrets_and_configs(project: Project) -> None:
    (project.directory / "password.txt").write_text("hunter2")
    (project.directory / "app.conf").write_text("from a file")
    project.variables["TOKEN"] = "from the environment"
    project.write(
        {
            "services": {
                "app": {
                    **SLEEPER,
                    "secrets": ["password", {"source": "token", "target": "token", "uid": "33", "mode": 0o400}],
                    "configs": ["filed", {"source": "inline", "target": "/etc/app/inline.conf", "mode": 0o440}],
                }
            },
            "secrets": {"password": {"file": "./password.txt"}, "token": {"environment": "TOKEN"}},
            "configs": {"filed": {"file": "./app.conf"}, "inline": {"content": "token=${TOKEN}"}},
        }
    )
    project("up", "-d")
    assert project.within("app", "cat /run/secrets/password") == "hunter2"
    assert project.within("app", "cat /run/secrets/token; stat -c ' %u %a' /run/secrets/token") == (
        "from the environment 33 400\n"
    )
    assert project.within("app", "cat /filed") == "from a file"
    assert project.within("app", "cat /etc/app/inline.conf; stat -c ' %a' /etc/app/inline.conf") == (
        "token=from the environment 440\n"
    )
    # What is a file on the host is not the container's to change.
    assert project("exec", "-T", "app", "sh", "-c", "echo x > /filed", check=False).returncode == 1
    project("restart", "-t", "0", "app")
    assert project.within("app", "cat /run/secrets/token") == "from the environment"


def test_the_settings_of_a_service_reach_its_container(project: Project) -> None:
    subnet = f"10.211.{random.randrange(256)}"
    (project.directory / "bound").mkdir()
    (project.directory / "bound/file").write_text("bound\n")
    project.write(
        {
            "services": {
                "app": {
                    **SLEEPER,
                    "hostname": "box",
                    "domainname": "example.org",
                    "read_only": True,
                    "tmpfs": ["/scratch:size=1m"],
                    "volumes": [
                        "./bound:/bound:ro",
                        {"type": "volume", "source": "data", "target": "/data", "volume": {"nocopy": True}},
                    ],
                    "deploy": {"resources": {"limits": {"memory": "64M", "cpus": "0.5", "pids": 50}}},
                    "ulimits": {"nofile": {"soft": 100, "hard": 200}},
                    "sysctls": {"net.core.somaxconn": 99},
                    "cap_drop": ["ALL"],
                    "cap_add": ["CHOWN"],
                    "security_opt": ["no-new-privileges:true"],
                    "logging": {"driver": "json-file", "options": {"max-size": "1m", "max-file": "2"}},
                    "shm_size": "32m",
                    "extra_hosts": ["far:10.9.8.7", "gateway:host-gateway"],
                    "dns_search": ["shop.example"],
                    "group_add": ["44"],
                    "oom_score_adj": 100,
                    "restart": "on-failure:3",
                    "stop_grace_period": "2s",
                    "labels": {"of": "app"},
                    "networks": {"fixed": {"ipv4_address": f"{subnet}.20", "mac_address": "02:42:0a:00:00:99"}},
                    "post_start": [{"command": ["touch", "/scratch/hooked"], "user": "root"}],
                },
                "beside": {**SLEEPER, "network_mode": "service:app", "pid": "service:app"},
            },
            "networks": {"fixed": {"ipam": {"config": [{"subnet": f"{subnet}.0/24", "gateway": f"{subnet}.9"}]}}},
            "volumes": {"data": {"driver_opts": {"type": "tmpfs", "device": "tmpfs", "o": "size=1m"}}},
        }
    )
    project("up", "-d")
    assert project.within("app", "hostname; hostname -i; ip link show eth0 | grep -o '02:42:0a:00:00:99'") == (
        f"box\n{subnet}.20\n02:42:0a:00:00:99\n"
    )
    assert project.within("app", "ip route | grep default").split()[2] == f"{subnet}.9"
    assert project.within("app", "cat /bound/file; ls /scratch; touch /x 2>&1 || true").splitlines() == [
        "bound",
        "hooked",
        "touch: /x: Read-only file system",
    ]
    assert project.within("app", "grep -c ' /data tmpfs ' /proc/mounts; df -k /dev/shm | awk 'END {print $2}'") == (
        "1\n32768\n"
    )
    assert project.within("app", "ulimit -n; cat /proc/sys/net/core/somaxconn /proc/1/oom_score_adj; id -G") == (
        "100\n99\n100\n0 44\n"
    )
    assert "CapEff:\t0000000000000001\n" in project.within("app", "cat /proc/1/status")
    assert "NoNewPrivs:\t1\n" in project.within("app", "cat /proc/1/status")
    assert "10.9.8.7\tfar" in project.within("app", "cat /etc/hosts")
    assert "search shop.example" in project.within("app", "cat /etc/resolv.conf")
    assert "sleep 600" in project.within("beside", "ps | head -2") and project.within("beside", "hostname") == "box\n"

    [shown] = json.loads(project.daemon.docker("inspect", project.ids()["app-1"]).stdout)
    settings = shown["HostConfig"]
    assert (settings["Memory"], settings["NanoCpus"], settings["PidsLimit"]) == (64 << 20, 500_000_000, 50)
    assert settings["LogConfig"] == {"Type": "json-file", "Config": {"max-file": "2", "max-size": "1m"}}
    assert settings["RestartPolicy"] == {"Name": "on-failure", "MaximumRetryCount": 3}
    assert shown["Config"]["StopTimeout"] == 2 and shown["Config"]["Labels"]["of"] == "app"


def test_networks_and_volumes_that_are_not_the_projects(project: Project) -> None:
    docker = project.daemon.docker
    docker("network", "create", "theirs")
    docker("volume", "create", "kept")
    try:
        docker("run", "-d", "--init", "--name", "neighbour", "--network", "theirs", "busybox", "sleep", "600")
        project.write(
            {
                "services": {"app": {**SLEEPER, "networks": ["shared"], "volumes": ["store:/store"]}},
                "networks": {"shared": {"name": "theirs", "external": True}},
                "volumes": {"store": {"name": "kept", "external": True}},
            }
        )
        project("up", "-d")
        project.within("app", "ping -c1 -W5 neighbour && touch /store/file")
        project("down", "-v")
        assert docker("run", "--rm", "-v", "kept:/v", "busybox", "ls", "/v").stdout == "file\n"
        assert docker("network", "inspect", "theirs").returncode == 0
        absent = {"services": {"app": {**SLEEPER, "networks": ["x"]}}, "networks": {"x": {"external": True}}}
        project.write(absent)
        refused = project("up", "-d", check=False)
        assert refused.returncode == 1 and "network x declared as external, but could not be found" in refused.stderr
    finally:
        docker("rm", "-f", "neighbour", check=False)
        docker("network", "rm", "theirs", check=False)
        docker("volume", "rm", "kept", check=False)


def test_a_changed_network_is_made_anew(project: Project) -> None:
    content: dict[str, Any] = {"services": {"app": SLEEPER}, "networks": {"default": {"labels": {"v": "1"}}}}
    project.write(content)
    project("up", "-d")
    before = project.daemon.docker("network", "inspect", "shop_default", "--format", "{{.ID}}").stdout
    content["networks"]["default"]["labels"]["v"] = "2"
    project.write(content)
    project("up", "-d")
    after = project.daemon.docker("network", "inspect", "shop_default", "--format", "{{.ID}} {{.Labels.v}}").stdout
    assert after.split()[0] != before.strip() and after.split()[1] == "2"
    assert project.services()["app-1"]["State"] == "running"


def test_events_and_ls_tell_about_the_project(project: Project) -> None:
    project.write({"services": {"app": SLEEPER}})
    seen: list[dict[str, Any]] = []
    with project.process("events", "--json") as events:
        assert events.stdout is not None
        stream = events.stdout
        reader = threading.Thread(target=lambda: seen.extend(json.loads(line) for line in stream if line.strip()))
        reader.start()

        # Nothing tells that the stream is open: make events until those of one container have come.
        def comes_through() -> bool:
            project("up", "-d", "--force-recreate")
            return {"create", "start"} <= {event["action"] for event in seen}

        until(comes_through, "an event arrives")
        project("stop")
        until(lambda: any(event["action"] == "stop" for event in seen), "the last event is here")
        os.killpg(events.pid, signal.SIGTERM)
        reader.join()
    assert {event["service"] for event in seen} == {"app"}
    assert {"create", "start", "die", "stop"} <= {event["action"] for event in seen}
    [listed] = json.loads(project.output("ls", "--all", "--format", "json"))
    assert (listed["Name"], listed["Status"]) == ("shop", "exited(1)")


def test_a_project_goes_on_when_the_daemon_does(project: Project) -> None:
    project.write({"services": {"web": {**server("web"), "restart": "always"}, "app": SLEEPER}})
    project("up", "-d")
    before = project.ids()
    project.daemon.kill9()
    project.daemon.start()
    assert project.within("app", "wget -q -O- http://web/") == "web\n"
    project("up", "-d", "--scale", "app=2")
    assert {**project.ids(), **before} == project.ids() and len(project.ids()) == 3
