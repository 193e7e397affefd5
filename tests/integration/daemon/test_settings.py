"""Settings of daemon.json that containers and networks have: each of dockerd's that changes something, with a real
daemon."""

import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.daemon import Daemon
from tests.support.registry import tar_of
from tests.support.waiting import until

BUSYBOX = "busybox"


def inspect(daemon: Daemon, name: str) -> Any:
    return daemon.http("GET", f"/containers/{name}/json").json()


LOOK = "ulimit -n; df -k /dev/shm | tail -1; grep NoNewPrivs /proc/self/status; cat /proc/1/comm; cat /etc/resolv.conf"


@pytest.fixture
def daemon_with(tmp_path: Path) -> Iterator[Any]:
    """A daemon with this daemon.json."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it runs real containers")
    started: list[Daemon] = []

    def start(settings: dict[str, object], *arguments: str, choose_subnet: bool = False) -> Daemon:
        file = tmp_path / f"daemon{len(started)}.json"
        file.write_text(json.dumps(settings))
        daemon = Daemon("--config-file", str(file), *arguments, choose_subnet=choose_subnet)
        started.append(daemon)
        daemon.start()
        return daemon

    yield start
    left = [one for daemon in started for one in daemon.close()]
    assert not left, left


def run(daemon: Daemon, *arguments: str) -> str:
    return daemon.docker("run", "--rm", *arguments).stdout


def test_what_containers_get_by_default(daemon_with: Any) -> None:
    daemon = daemon_with(
        {
            "default-ipc-mode": "shareable",
            "default-shm-size": "48M",
            "default-cgroupns-mode": "private",
            "default-ulimits": {
                "nofile": {"Name": "nofile", "Hard": 2048, "Soft": 1024},
                "core": {"Hard": 0, "Soft": 0},
            },
            "no-new-privileges": True,
            "init": True,
            "dns": ["192.0.2.53"],
            "dns-opts": ["ndots:3"],
            "dns-search": ["example.test"],
            "host-gateway-ips": ["192.0.2.9", "2001:db8::9"],
            "cgroup-parent": "/hk-settings",
        }
    )
    text = run(
        daemon,
        *("--add-host", "up:host-gateway", BUSYBOX, "sh", "-c"),
        f"{LOOK}; grep up /etc/hosts",
    )
    lines = text.splitlines()
    assert lines[0] == "1024"
    assert lines[1].split()[1] == str(48 * 1024)
    assert "NoNewPrivs:\t1" in lines
    assert lines[3] in ("tini", "docker-init", "tini-static")
    assert {"nameserver 192.0.2.53", "search example.test", "options ndots:3"} <= set(lines)
    assert {"192.0.2.9\tup", "2001:db8::9\tup"} <= set(lines)
    container = daemon.docker("create", BUSYBOX, "true").stdout.strip()
    host_config = daemon.http("GET", f"/containers/{container}/json").json()["HostConfig"]
    assert (host_config["IpcMode"], host_config["CgroupnsMode"]) == ("shareable", "private")
    assert {"Name": "nofile", "Hard": 2048, "Soft": 1024} in host_config["Ulimits"]
    assert host_config["CgroupParent"] == "/hk-settings"
    info = daemon.http("GET", "/info").json()
    assert "name=no-new-privileges" in info["SecurityOptions"]


def test_a_container_may_say_otherwise(daemon_with: Any) -> None:
    daemon = daemon_with(
        {
            "default-shm-size": "48M",
            "default-ulimits": {"nofile": {"Hard": 2048, "Soft": 1024}},
            "no-new-privileges": True,
            "init": True,
            "dns": ["192.0.2.53"],
        }
    )
    text = run(
        daemon,
        *("--shm-size", "16m", "--ulimit", "nofile=500", "--security-opt", "no-new-privileges=false", "--init=false"),
        *("--dns", "192.0.2.99", BUSYBOX, "sh", "-c"),
        LOOK,
    )
    lines = text.splitlines()
    assert (lines[0], lines[1].split()[1], lines[3]) == ("500", str(16 * 1024), "sh")
    assert "NoNewPrivs:\t0" in lines and "nameserver 192.0.2.99" in lines and "nameserver 192.0.2.53" not in lines


def test_a_seccomp_profile_of_the_daemon(daemon_with: Any, tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    denied = {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}
    profile.write_text(json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [denied]}))
    daemon = daemon_with({"seccomp-profile": str(profile)})
    assert daemon.docker("run", "--rm", BUSYBOX, "mkdir", "/x", check=False).returncode != 0
    run(daemon, "--security-opt", "seccomp=unconfined", BUSYBOX, "mkdir", "/x")
    run(daemon, "--security-opt", "seccomp=builtin", BUSYBOX, "mkdir", "/x")
    run(daemon, "--privileged", BUSYBOX, "mkdir", "/x")
    assert f"name=seccomp,profile={profile}" in daemon.http("GET", "/info").json()["SecurityOptions"]


def test_without_a_filter_when_the_daemon_is_told_so(daemon_with: Any) -> None:
    daemon = daemon_with({"seccomp-profile": "unconfined"})
    assert "Seccomp:\t0" in run(daemon, BUSYBOX, "cat", "/proc/self/status")
    assert "Seccomp:\t2" in run(daemon, "--security-opt", "seccomp=builtin", BUSYBOX, "cat", "/proc/self/status")


def test_the_default_bridge_has_ipv6_and_a_range(daemon_with: Any) -> None:
    daemon = daemon_with(
        {
            "bip": "10.209.77.1/24",
            "fixed-cidr": "10.209.77.128/28",
            "ipv6": True,
            "fixed-cidr-v6": "fd00:77:1::/64",
            "mtu": 1400,
        },
        choose_subnet=True,
    )
    text = run(
        daemon, BUSYBOX, "sh", "-c", "ip -o addr show eth0; ip link show eth0; ip -6 route; ping -c1 -W5 fd00:77:1::1"
    )
    address = text.split("inet ")[1].split("/")[0]
    assert 128 <= int(address.rsplit(".", 1)[1]) < 144
    assert "inet6 fd00:77:1:" in text and "default via fd00:77:1::1" in text and "mtu 1400" in text
    network = daemon.http("GET", "/networks/bridge").json()
    assert network["EnableIPv6"] is True
    ranges = {pool["Subnet"]: pool.get("IPRange") for pool in network["IPAM"]["Config"]}
    assert ranges == {"10.209.77.0/24": "10.209.77.128/28", "fd00:77:1::/64": "fd00:77:1::/64"}
    daemon.restart()
    assert "inet6 fd00:77:1:" in run(daemon, BUSYBOX, "ip", "-o", "addr", "show", "eth0")


def test_fixed_cidr_alone_is_the_subnet(daemon_with: Any) -> None:
    daemon = daemon_with({"fixed-cidr": "10.209.78.0/25"}, choose_subnet=True)
    pool = daemon.http("GET", "/networks/bridge").json()["IPAM"]["Config"][0]
    assert (pool["Subnet"], pool["Gateway"]) == ("10.209.78.0/25", "10.209.78.1")
    assert "10.209.78." in run(daemon, BUSYBOX, "ip", "-o", "addr", "show", "eth0")


def test_ipv6_without_a_subnet_gets_one_and_keeps_it(daemon_with: Any) -> None:
    daemon = daemon_with({"ipv6": True})

    def subnets() -> list[str]:
        return [pool["Subnet"] for pool in daemon.http("GET", "/networks/bridge").json()["IPAM"]["Config"]]

    first = subnets()
    assert len(first) == 2 and first[1].startswith("fd")
    daemon.restart()
    assert subnets() == first


def test_no_talk_between_containers_no_masquerade_another_gateway_and_one_address_for_ports(daemon_with: Any) -> None:
    daemon = daemon_with(
        {
            "bip": "10.209.79.1/24",
            "default-gateway": "10.209.79.254",
            "icc": False,
            "ip-masq": False,
            "ip": "127.0.0.1",
        },
        choose_subnet=True,
    )
    assert "default via 10.209.79.254" in run(daemon, BUSYBOX, "ip", "route")
    name = daemon.docker("run", "-d", "-p", "80", BUSYBOX, "httpd", "-f").stdout.strip()
    shown = daemon.http("GET", f"/containers/{name}/json").json()["NetworkSettings"]
    assert [binding["HostIp"] for binding in shown["Ports"]["80/tcp"]] == ["127.0.0.1"]
    address = shown["Networks"]["bridge"]["IPAddress"]
    assert (
        daemon.docker("run", "--rm", BUSYBOX, "wget", "-T2", "-qO-", f"http://{address}/", check=False).returncode != 0
    )
    options = daemon.http("GET", "/networks/bridge").json()["Options"]
    assert options["com.docker.network.bridge.enable_icc"] == "false"
    assert options["com.docker.network.bridge.enable_ip_masquerade"] == "false"
    assert options["com.docker.network.bridge.host_binding_ipv4"] == "127.0.0.1"


def test_the_init_program_of_the_settings(daemon_with: Any, tmp_path: Path) -> None:
    known = shutil.which("tini-static") or shutil.which("docker-init")
    assert known is not None, "scripts/setup installs tini"
    mine = tmp_path / "my-init"
    mine.write_bytes(Path(known).read_bytes() + b"and of my own")
    mine.chmod(0o755)
    daemon = daemon_with({"init-path": str(mine)})
    told = run(daemon, "--init", BUSYBOX, "sha256sum", "/proc/1/exe").split()[0]
    assert told == hashlib.sha256(mine.read_bytes()).hexdigest()


def test_networks_get_ipv6_subnets_from_the_pools(daemon_with: Any) -> None:
    pools = [{"base": "10.209.64.0/20", "size": 24}, {"base": "fd00:209:64::/48", "size": 80}]
    daemon = daemon_with({"default-address-pools": pools})
    try:
        for name, prefix in (("one", "fd00:209:64::"), ("two", "fd00:209:64:0:1::")):
            daemon.docker("network", "create", "--ipv6", name)
            pool4, pool6 = daemon.http("GET", f"/networks/{name}").json()["IPAM"]["Config"]
            assert pool4["Subnet"].startswith("10.209.")
            assert pool6 == {"Subnet": f"{prefix}/80", "Gateway": f"{prefix}1"}
        assert "fd00:209:64:0:1::2/80" in run(
            daemon, "--network", "two", BUSYBOX, "ip", "-6", "address", "show", "eth0"
        )
        shown = daemon.http("GET", "/info").json()["DefaultAddressPools"]
        assert shown == [{"Base": pool["base"], "Size": pool["size"]} for pool in pools]
    finally:
        daemon.docker("network", "rm", "one", "two", check=False)


def test_default_options_of_new_networks(daemon_with: Any) -> None:
    daemon = daemon_with(
        {
            "default-network-opts": {
                "bridge": {"com.docker.network.driver.mtu": "1400", "com.docker.network.enable_ipv6": "true"}
            }
        }
    )
    daemon.docker("network", "create", "usual")
    daemon.docker("network", "create", "-o", "com.docker.network.driver.mtu=1300", "--ipv6=false", "own")
    try:
        assert "mtu 1400" in run(daemon, "--network", "usual", BUSYBOX, "ip", "link", "show", "eth0")
        assert daemon.http("GET", "/networks/usual").json()["EnableIPv6"] is True
        own = daemon.http("GET", "/networks/own").json()
        assert own["EnableIPv6"] is False and own["Options"] == {"com.docker.network.driver.mtu": "1300"}
    finally:
        daemon.docker("network", "rm", "usual", "own", check=False)


def shared_memory_of_steps(daemon: Daemon) -> int:
    """In bytes, by the classic door."""
    body = tar_of({"Dockerfile": f"FROM {BUSYBOX}\nRUN df -k /dev/shm | tail -n1 | awk '{{print $2}}'\n".encode()})
    told = daemon.http("POST", "/build?nocache=1", body, {"Content-Type": "application/x-tar"}).body.decode()
    lines = [json.loads(line).get("stream", "").strip() for line in told.splitlines()]
    return int(next(line for line in lines if line.isdigit())) << 10


def test_sighup_takes_over_what_dockerd_does(tmp_path: Path) -> None:
    settings = tmp_path / "daemon.json"
    settings.write_text("{}")
    with Daemon("--config-file", str(settings)) as daemon:
        assert shared_memory_of_steps(daemon) == 64 << 20
        shown = daemon.http("GET", "/info").json()
        settings.write_text(
            json.dumps(
                {
                    "default-shm-size": "32M",
                    "default-ipc-mode": "shareable",
                    "runtimes": {"mine": {"path": "/usr/bin/runc"}},
                    "default-runtime": "mine",
                    "max-concurrent-downloads": 1,
                    "max-concurrent-uploads": 1,
                    "max-download-attempts": 2,
                    "shutdown-timeout": 3,
                    "registry-mirrors": ["https://mirror.example"],
                    "insecure-registries": ["plain.example:5000"],
                    "labels": ["stage=two"],
                    "features": {"containerd-snapshotter": True},
                    "live-restore": True,
                    "mtu": 1400,
                    "builder": {"gc": {"enabled": False}},
                }
            )
        )
        daemon.reload()
        until(lambda: daemon.http("GET", "/info").json()["Labels"] == ["stage=two"], "the reload")
        info = daemon.http("GET", "/info").json()
        assert info["DefaultRuntime"] == "mine" and "mine" in info["Runtimes"] and shown["DefaultRuntime"] != "mine"
        told = next(line for line in daemon.log().splitlines() if "need a restart of the daemon" in line)
        assert "mtu" in told and "builder" in told, "dockerd, too, reads these at its start alone"
        assert shared_memory_of_steps(daemon) == 32 << 20, "a builder that is there already takes over what it can"
        container = daemon.docker("create", BUSYBOX, "true").stdout.strip()
        host_config = daemon.http("GET", f"/containers/{container}/json").json()["HostConfig"]
        assert (host_config["ShmSize"], host_config["IpcMode"], host_config["Runtime"]) == (
            32 << 20,
            "shareable",
            "mine",
        )
        only = quote(json.dumps({"type": ["daemon"]}))
        until_now = daemon.http("GET", f"/events?since=1&until={int(time.time()) + 1}&filters={only}").body
        event = json.loads(until_now.splitlines()[0])
        assert event["Action"] == "reload"
        told = event["Actor"]["Attributes"]
        assert (told["max-concurrent-downloads"], told["default-runtime"]) == ("1", "mine")
        settings.write_text(json.dumps({"default-runtime": "absent", "labels": ["stage=three"]}))
        daemon.reload()
        until(lambda: "the default runtime absent is not installed" in daemon.log(), "the refusal")
        assert daemon.http("GET", "/info").json()["Labels"] == ["stage=two"]


def test_a_runtime_that_the_file_no_longer_names_is_left_to_the_containers_that_run_with_it(tmp_path: Path) -> None:
    settings = tmp_path / "daemon.json"
    both = {"mine": {"path": "/usr/bin/runc"}, "other": {"path": "/usr/bin/runc"}}
    settings.write_text(json.dumps({"runtimes": both}))

    def reloaded(daemon: Daemon, label: str, **document: object) -> set[str]:
        settings.write_text(json.dumps({**document, "labels": [label]}))
        daemon.reload()
        until(lambda: daemon.http("GET", "/info").json()["Labels"] == [label], "the reload")
        return set(daemon.http("GET", "/info").json()["Runtimes"]) & {"mine", "other"}

    with Daemon("--config-file", str(settings)) as daemon:
        daemon.docker("run", "-d", "--name", "runs", "--runtime", "mine", BUSYBOX, "sleep", "1000")
        daemon.docker("create", "--name", "waits", "--runtime", "mine", BUSYBOX, "true")
        assert reloaded(daemon, "a=1") == {"mine", "other"}, "a file without the key says nothing of them"
        assert reloaded(daemon, "a=2", runtimes={"other": both["other"]}) == {"other"}
        unknown = "unknown or invalid runtime name: mine"
        refused = daemon.docker("create", "--runtime", "mine", BUSYBOX, check=False)
        assert unknown in refused.stderr
        assert unknown in daemon.docker("start", "waits", check=False).stderr
        assert daemon.docker("exec", "runs", "echo", "hi").stdout == "hi\n"
        daemon.docker("pause", "runs")
        daemon.docker("unpause", "runs")
        daemon.docker("update", "--memory", "64m", "--memory-swap", "64m", "runs")
        daemon.docker("stop", "-t", "0", "runs")
        assert unknown in daemon.docker("start", "runs", check=False).stderr
        assert reloaded(daemon, "a=3", runtimes=both) == {"mine", "other"}
        daemon.docker("start", "runs")
        assert reloaded(daemon, "a=4", runtimes={}) == set()
        daemon.restart()
        assert daemon.docker("exec", "runs", "echo", "hi").stdout == "hi\n"
        assert unknown in daemon.docker("start", "waits", check=False).stderr
        daemon.docker("rm", "-f", "runs", "waits")


def test_containers_end_with_a_daemon_that_is_told_so(daemon_with: Any) -> None:
    daemon = daemon_with({"live-restore": False}, "--log-level=info")
    assert daemon.http("GET", "/info").json()["LiveRestoreEnabled"] is False
    script = ["busybox", "sh", "-c", "trap 'exit 5' TERM; sleep 1000 & wait"]
    daemon.docker("run", "-d", "--name", "once", *script)
    daemon.docker("run", "-d", "--name", "always", "--restart", "always", *script)
    daemon.docker("run", "-d", "--name", "gone", "--rm", *script)
    daemon.docker("run", "-d", "--name", "frozen", "--stop-timeout", "0", *script)
    daemon.docker("pause", "frozen")
    pids = [inspect(daemon, name)["State"]["Pid"] for name in ("once", "always", "gone", "frozen")]
    daemon.stop()
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    daemon.start()
    until(lambda: inspect(daemon, "always")["State"]["Running"], "it is started again")
    once, always = inspect(daemon, "once")["State"], inspect(daemon, "always")
    assert (once["Status"], once["ExitCode"]) == ("exited", 5)
    assert always["RestartCount"] == 0
    assert inspect(daemon, "frozen")["State"]["ExitCode"] in (5, 137)
    assert daemon.http("GET", "/containers/gone/json").status == 404
    # A daemon that is killed ends nothing: the next one does.
    daemon.docker("start", "once")
    before = always["State"]["Pid"]
    daemon.kill9()
    daemon.start()
    assert inspect(daemon, "once")["State"]["Status"] == "exited"
    until(lambda: inspect(daemon, "always")["State"]["Pid"] not in (0, before), "it is started again")


def test_what_means_something_else_is_told_in_the_log_and_nothing_else_happens(daemon_with: Any) -> None:
    daemon = daemon_with(
        {
            "storage-driver": "overlay2",
            "iptables": True,
            "userland-proxy": False,
            "containerd": "/run/containerd/containerd.sock",
            "exec-opts": ["native.cgroupdriver=cgroupfs"],
            "experimental": False,
        },
        "--log-level=info",
    )
    log = daemon.log_path.read_text()
    for key in ("storage-driver", "iptables", "userland-proxy", "containerd", "exec-opts"):
        assert log.count(f'msg="{key}: ') == 1, key


def test_the_store_of_dockerd_is_left_alone(tmp_path: Path) -> None:
    for name in ("image/overlay2", "volumes/precious/_data", "containers"):
        (tmp_path / name).mkdir(parents=True)
    program = Path(__file__).parents[3] / ".venv/bin/husk"
    done = subprocess.run(
        [program, "serve", "--data-root", tmp_path, "--exec-root", tmp_path / "run", "-H", f"unix://{tmp_path}/s"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and "holds the store of dockerd" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "run") == ["containers", "image", "volumes"]
