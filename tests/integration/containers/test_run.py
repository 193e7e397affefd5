"""`docker run` with the real client: how the process comes and goes, what it sees, whom it reaches."""

import json
import re
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.running import run, sh
from tests.support.waiting import until

# --- coming and going


def test_prints_and_leaves_nothing(daemon: Daemon):
    assert run(daemon, "busybox", "echo", "hi") == "hi\n"
    assert daemon.docker("ps", "-aq").stdout == ""


def test_detached_prints_the_id_and_runs_on(daemon: Daemon):
    container = daemon.docker("run", "-d", "--name", "web", "busybox", "sleep", "1000").stdout.strip()
    assert re.fullmatch("[0-9a-f]{64}", container)
    assert daemon.docker("ps", "--no-trunc", "-q").stdout.strip() == container
    assert daemon.docker("inspect", "-f", "{{.State.Running}} {{.Name}}", container).stdout == "true /web\n"


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_exit_status_is_that_of_the_process(daemon: Daemon, code: int):
    assert daemon.docker("run", "--rm", "busybox", "sh", "-c", f"exit {code}", check=False).returncode == code


def test_death_by_a_signal_is_128_more(daemon: Daemon):
    # The first process of a namespace is immune to its own signals, so a child of an init gets it.
    assert daemon.docker("run", "--rm", "--init", "busybox", "sh", "-c", "kill -9 $$", check=False).returncode == 137


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["no-such-program"], 127, 'exec: "no-such-program": executable file not found in $PATH'),
        (["/no/such/file"], 127, "no such file or directory"),
        (["/etc/passwd"], 126, "permission denied"),
        (["/tmp"], 126, "permission denied"),
    ],
)
def test_a_command_that_cannot_run(daemon: Daemon, command: list[str], code: int, words: str):
    done = daemon.docker("run", "--rm", "busybox", *command, check=False)
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr
    assert daemon.docker("ps", "-aq").stdout == "", "--rm holds for failed starts too"


def test_a_container_that_cannot_start_stays_created_without_rm(daemon: Daemon):
    assert daemon.docker("run", "--name", "bad", "busybox", "no-such-program", check=False).returncode == 127
    state = json.loads(daemon.docker("inspect", "bad").stdout)[0]["State"]
    assert (state["Status"], state["ExitCode"], state["Running"], state["Pid"]) == ("created", 127, False, 0)
    assert "no-such-program" in state["Error"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--memory", "1m", "busybox"],
        ["--network", "no-such-network", "busybox"],
        ["--cap-add", "NO_SUCH_CAP", "busybox"],
        ["-v", "/tmp:/", "busybox"],
        ["-u", "no-such-user", "busybox"],
        ["--runtime", "no-such-runtime", "busybox"],
    ],
)
def test_the_daemon_refuses_with_125(daemon: Daemon, arguments: list[str]):
    done = daemon.docker("run", "--rm", *arguments, "true", check=False)
    assert done.returncode == 125, done.stderr
    assert daemon.docker("ps", "-aq").stdout == ""


def test_unknown_image_is_125(daemon: Daemon):
    done = daemon.docker("run", "--rm", "--pull", "never", "no-such-image", check=False)
    assert (done.returncode, "No such image: no-such-image:latest" in done.stderr) == (125, True), done.stderr


def test_cidfile(daemon: Daemon, tmp_path: Path):
    container = daemon.docker("run", "-d", "--cidfile", str(tmp_path / "cid"), "busybox", "true").stdout.strip()
    assert (tmp_path / "cid").read_text() == container


# --- what the process sees


@pytest.mark.parametrize(
    ("user", "seen"),
    [
        ("www-data", "33:33:33"),
        ("33", "33:33:33"),
        ("33:100", "33:100:100"),
        ("www-data:users", "33:100:100"),
        ("4242", "4242:0:0"),
        ("4242:4343", "4242:4343:4343"),
        ("root", "0:0:0"),
    ],
)
def test_user(daemon: Daemon, user: str, seen: str):
    assert sh(daemon, "echo $(id -u):$(id -g):$(id -G | tr ' ' ,)", "-u", user) == seen + "\n"


def test_user_with_more_groups(daemon: Daemon):
    assert sh(daemon, "id -G", "-u", "www-data", "--group-add", "users", "--group-add", "777").split() == [
        "33",
        "100",
        "777",
    ]


@pytest.mark.parametrize(("user", "words"), [("nobody-here", "unable to find user nobody-here"), ("0:nogrp", "nogrp")])
def test_unknown_user_and_group(daemon: Daemon, user: str, words: str):
    done = daemon.docker("run", "--rm", "-u", user, "busybox", "true", check=False)
    assert (done.returncode, words in done.stderr) == (125, True), done.stderr


def test_a_user_other_than_root_has_no_capabilities(daemon: Daemon):
    assert sh(daemon, "grep CapEff /proc/self/status", "-u", "www-data").split()[1].strip("0") == ""


def test_home_is_the_users(daemon: Daemon):
    assert sh(daemon, "echo $HOME", "-u", "www-data") == "/var/www\n"
    assert sh(daemon, "echo $HOME") == "/root\n"


def test_working_directory_is_made_where_it_lacks(daemon: Daemon):
    assert sh(daemon, "pwd; stat -c %u:%a .", "-w", "/a/b") == "/a/b\n0:755\n"
    assert sh(daemon, "pwd", "-w", "/tmp") == "/tmp\n"


def test_environment(daemon: Daemon, tmp_path: Path):
    (tmp_path / "env").write_text("FROM_FILE=yes\nA=file\n")
    seen = sh(daemon, "env", "-e", "A=1", "-e", "B=two words", "--env-file", str(tmp_path / "env")).splitlines()
    assert {"A=1", "B=two words", "FROM_FILE=yes"} <= set(seen)
    assert "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" in seen


def test_environment_replaces_the_images(daemon: Daemon):
    assert run(daemon, "-e", "PATH=/bin:/mine", "busybox", "sh", "-c", "echo $PATH") == "/bin:/mine\n"


def test_entrypoint(daemon: Daemon):
    assert run(daemon, "--entrypoint", "echo", "busybox", "a", "b") == "a b\n"
    assert run(daemon, "--entrypoint", "pwd", "busybox") == "/\n"


def test_hostname(daemon: Daemon):
    seen = sh(daemon, "hostname; cat /etc/hostname; tail -1 /etc/hosts", "--hostname", "box.example").split()
    assert seen[:2] == ["box.example", "box.example"]
    assert seen[2].startswith(_address(daemon, 0)[:-1]) and seen[3] == "box.example"
    container = daemon.docker("run", "-d", "busybox", "hostname").stdout.strip()
    daemon.docker("wait", container)
    assert daemon.docker("logs", container).stdout.strip() == container[:12]


def test_domain_name(daemon: Daemon):
    assert sh(daemon, "cat /proc/sys/kernel/domainname", "--domainname", "example.org") == "example.org\n"


def test_labels(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "labelled", "-l", "a=1", "--label", "empty", "busybox", "true")
    assert json.loads(daemon.docker("inspect", "-f", "{{json .Config.Labels}}", "labelled").stdout) == {
        "a": "1",
        "empty": "",
    }


def test_init_reaps_orphans(daemon: Daemon):
    script = "sh -c 'sleep 0.01 &'; while ps -o comm | grep -q ^sleep; do :; done; cat /proc/1/comm"
    assert sh(daemon, script, "--init").splitlines() == ["docker-init"]


def test_hosts_and_dns(daemon: Daemon):
    text = sh(
        daemon,
        "cat /etc/hosts /etc/resolv.conf",
        *["--add-host", "db:192.0.2.7", "--add-host", "gw:host-gateway"],
        *["--dns", "192.0.2.53", "--dns-search", "example.org", "--dns-option", "ndots:2"],
    )
    assert "192.0.2.7\tdb\n" in text
    assert f"{_address(daemon, 1)}\tgw\n" in text
    assert text.endswith("nameserver 192.0.2.53\nsearch example.org\noptions ndots:2\n")


# --- network


def _address(daemon: Daemon, last: int) -> str:
    return f"{daemon.config.bip.rpartition('.')[0]}.{last}"


def test_none_network_has_loopback_alone(daemon: Daemon):
    assert sh(daemon, "ls /sys/class/net; ping -c1 -W9 127.0.0.1 > /dev/null && echo lo", "--net", "none") == "lo\nlo\n"


def test_host_network_is_the_hosts(daemon: Daemon):
    host = {path.name for path in Path("/sys/class/net").iterdir()}
    assert daemon.config.bridge_name in sh(daemon, "ls /sys/class/net", "--net", "host").split()
    assert sh(daemon, "hostname", "--net", "host").strip() == Path("/proc/sys/kernel/hostname").read_text().strip()
    assert daemon.config.bridge_name in host


def test_bridge_has_an_address_and_reaches_its_gateway(daemon: Daemon):
    script = f"ip -4 -o addr show dev eth0; ip route; ping -c1 -W20 {_address(daemon, 1)}"
    text = sh(daemon, script)
    assert re.search(rf"inet {re.escape(_address(daemon, 0)[:-1])}\d+/24", text)
    assert f"default via {_address(daemon, 1)} dev eth0" in text
    assert "1 packets received" in text


def test_two_containers_reach_each_other(daemon: Daemon):
    server = "while true; do echo served | nc -l -p 8080; done"
    daemon.docker("run", "-d", "--name", "server", "busybox", "sh", "-c", server)
    address = daemon.docker("inspect", "-f", "{{.NetworkSettings.Networks.bridge.IPAddress}}", "server").stdout.strip()
    assert sh(daemon, f"until nc -w 2 {address} 8080; do sleep 0.05; done", "--net", "bridge") == "served\n"


def test_an_unprivileged_user_may_listen_low_and_ping(daemon: Daemon):
    script = "nc -l -p 80 & until grep -q ':0050 ' /proc/net/tcp /proc/net/tcp6; do sleep 0.01; done; echo listens; "
    seen = sh(daemon, script + "ping -c1 -W9 127.0.0.1 | tail -1", "-u", "4242")
    assert seen.startswith("listens\n")


def test_addresses_come_back(daemon: Daemon):
    addresses = {sh(daemon, "ip -4 -o addr show dev eth0").split()[3] for _ in range(3)}
    assert all(address.endswith("/24") for address in addresses)
    daemon.docker("run", "-d", "--name", "net", "busybox", "sleep", "1000")
    daemon.docker("kill", "net")
    until(
        lambda: (
            daemon.docker("inspect", "-f", "{{.NetworkSettings.Networks.bridge.IPAddress}}", "net").stdout.strip()
            in ("", "invalid IP")
        ),
        "a stopped container has no address",
    )
