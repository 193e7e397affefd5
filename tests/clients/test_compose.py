"""`docker compose` v2 against a real daemon: whole projects, as their users run them."""

import json
import re
import signal
import threading
from typing import Any

from tests.support.compose import Project
from tests.support.compose_services import SLEEPER, answer, get, healthy, server
from tests.support.free_ports import free_ports
from tests.support.waiting import until


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
    assert project("exec", "-T", "api", "ping", "-c1", "-W20", address, check=False).returncode == 0

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

    # And that of developers: an interrupt stops the project. It goes to the command alone, which tells the plugin: at a
    # terminal it would go to the plugin alone. One that gets both may take the second for "kill them now".
    with project.process("up", "--no-color", "base") as running:
        assert running.stdout is not None
        for line in running.stdout:
            if "| ready" in line:
                break
        running.send_signal(signal.SIGINT)
        said = running.stdout.read()
        assert running.wait(20) in (0, 130)
    assert project.output("logs", "--no-log-prefix", "base").splitlines()[-1] == "leaving", said
    assert project.services()["base-1"]["State"] == "exited"


def test_events_and_ls_tell_about_the_project(project: Project) -> None:
    project.write({"services": {"app": SLEEPER}})
    seen: list[dict[str, Any]] = []
    with project.process("events", "--json") as events:
        assert events.stdout is not None
        stream = events.stdout
        reader = threading.Thread(
            daemon=True, target=lambda: seen.extend(json.loads(line) for line in stream if line.strip())
        )
        reader.start()

        # Nothing tells that the stream is open: make events until those of one container have come.
        def comes_through() -> bool:
            project("up", "-d", "--force-recreate")
            return {"create", "start"} <= {event["action"] for event in seen}

        until(comes_through, "an event arrives")
        project("stop")
        until(lambda: any(event["action"] == "stop" for event in seen), "the last event is here")
        events.send_signal(signal.SIGTERM)
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
