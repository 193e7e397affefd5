"""Settings of services, networks, volumes, secrets and configs, as a compose file gives them and the containers get
them."""

import json
import random
from typing import Any

from tests.support.compose import Project
from tests.support.compose_services import SLEEPER


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
