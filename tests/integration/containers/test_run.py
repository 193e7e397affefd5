"""`docker run` with the real client: what the process sees, how it ends, and what it must not be able to do."""

import json
import re
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.waiting import until


def run(daemon: Daemon, *arguments: str) -> str:
    """The output of a container that ends well."""
    return daemon.docker("run", "--rm", *arguments).stdout


def sh(daemon: Daemon, script: str, *options: str) -> str:
    return run(daemon, *options, "busybox", "sh", "-c", script)


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


# --- limits, as the kernel has them


def cgroup(daemon: Daemon, options: list[str], *files: str) -> list[str]:
    """The values of cgroup files as the container sees them, by their v1 and v2 names."""
    version_2 = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    paths = [f"/sys/fs/cgroup/{file.split('|')[version_2]}" for file in files]
    return run(daemon, *options, "busybox", "cat", *paths).splitlines()


def test_memory_limit(daemon: Daemon):
    assert cgroup(daemon, ["-m", "32m"], "memory/memory.limit_in_bytes|memory.max") == [str(32 << 20)]


def test_memory_limit_kills(daemon: Daemon):
    daemon.docker(
        "run", "--name", "fat", "-m", "16m", "--memory-swap", "16m", "busybox", "tail", "/dev/zero", check=False
    )
    state = json.loads(daemon.docker("inspect", "fat").stdout)[0]["State"]
    assert (state["OOMKilled"], state["ExitCode"], state["Status"]) == (True, 137, "exited")


def test_cpu_limits(daemon: Daemon):
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        assert cgroup(daemon, ["--cpus", "0.5"], "|cpu.max") == ["50000 100000"]
        return
    files = ["cpu/cpu.cfs_quota_us|", "cpu/cpu.cfs_period_us|", "cpu/cpu.shares|"]
    assert cgroup(daemon, ["--cpus", "0.5", "-c", "512"], *files) == ["50000", "100000", "512"]
    assert cgroup(daemon, ["--cpu-quota", "20000", "--cpu-period", "40000"], *files)[:2] == ["20000", "40000"]


def test_cpuset(daemon: Daemon):
    assert sh(daemon, "grep Cpus_allowed_list /proc/self/status", "--cpuset-cpus", "0").split()[1] == "0"


def test_pids_limit(daemon: Daemon):
    assert cgroup(daemon, ["--pids-limit", "33"], "pids/pids.max|pids.max") == ["33"]
    script = "for i in 1 2 3 4 5 6 7 8; do sleep 5 & done; echo all"
    done = daemon.docker("run", "--rm", "--pids-limit", "4", "busybox", "sh", "-c", script, check=False)
    assert "can't fork" in done.stderr and "all" not in done.stdout


def test_ulimit_and_shm(daemon: Daemon):
    assert sh(daemon, "ulimit -n; ulimit -Hn", "--ulimit", "nofile=100:200") == "100\n200\n"
    assert "8192" in sh(daemon, "df -k /dev/shm", "--shm-size", "8m")
    assert "65536" in sh(daemon, "df -k /dev/shm")


# --- files


def test_read_only_root(daemon: Daemon):
    script = "touch /x; touch /dev/shm/ok && echo shm; echo x > /tmp/t && echo tmp"
    done = daemon.docker("run", "--rm", "--read-only", "--tmpfs", "/tmp", "busybox", "sh", "-c", script)
    assert (done.stdout, "Read-only file system" in done.stderr) == ("shm\ntmp\n", True)


def test_tmpfs_options(daemon: Daemon):
    line = sh(daemon, "grep ' /scratch ' /proc/mounts", "--tmpfs", "/scratch:size=1m,mode=1770")
    assert {"tmpfs", "/scratch", "rw,nosuid,nodev,noexec"} <= {
        *line.split()[1:3],
        ",".join(line.split()[3].split(",")[:4]),
    }
    assert "size=1024k" in line and "mode=1770" in line


def test_mount_tmpfs(daemon: Daemon):
    line = sh(daemon, "grep ' /t ' /proc/mounts", "--mount", "type=tmpfs,target=/t,tmpfs-size=1048576,tmpfs-mode=0700")
    assert "size=1024k" in line and "mode=700" in line


def test_bind_mounts(daemon: Daemon, tmp_path: Path):
    (tmp_path / "file").write_text("from the host\n")
    assert sh(daemon, "cat /in/file; echo back > /in/answer", "-v", f"{tmp_path}:/in") == "from the host\n"
    assert (tmp_path / "answer").read_text() == "back\n"
    done = daemon.docker("run", "--rm", "-v", f"{tmp_path}:/in:ro", "busybox", "touch", "/in/no", check=False)
    assert (done.returncode, "Read-only" in done.stderr, (tmp_path / "no").exists()) == (1, True, False)
    assert run(daemon, "-v", f"{tmp_path}/file:/etc/one", "busybox", "cat", "/etc/one") == "from the host\n"


def test_a_missing_bind_source_is_made_by_v_and_refused_by_mount(daemon: Daemon, tmp_path: Path):
    sh(daemon, "touch /in/x", "-v", f"{tmp_path}/new/dir:/in")
    assert (tmp_path / "new/dir/x").exists()
    mount = f"type=bind,source={tmp_path}/none,target=/in"
    done = daemon.docker("run", "--rm", "--mount", mount, "busybox", "true", check=False)
    assert (done.returncode, "bind source path does not exist" in done.stderr) == (125, True), done.stderr
    assert not (tmp_path / "none").exists()


def test_nested_binds_in_any_order(daemon: Daemon, tmp_path: Path):
    (tmp_path / "outer").mkdir()
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/f").write_text("inner\n")
    binds = ["-v", f"{tmp_path}/inner:/m/sub", "-v", f"{tmp_path}/outer:/m"]
    assert sh(daemon, "cat /m/sub/f", *binds) == "inner\n"


def test_a_link_in_the_image_does_not_lead_a_mount_to_the_host(daemon: Daemon, tmp_path: Path):
    victim = tmp_path / "victim"
    victim.mkdir()
    daemon.docker("run", "--name", "evil", "busybox", "ln", "-s", str(victim), "/trap")
    daemon.docker("commit", "evil", "evil:1")
    try:
        # Whether it is refused or made inside is the runtime's choice.
        daemon.docker("run", "--rm", "-v", f"{tmp_path}:/trap/inside", "evil:1", "true", check=False)
        assert list(victim.iterdir()) == []
    finally:
        daemon.docker("rm", "-f", "evil")
        daemon.docker("rmi", "evil:1")


# --- rights


def effective_capabilities(daemon: Daemon, *options: str) -> int:
    return int(sh(daemon, "grep CapEff /proc/self/status", *options).split()[1], 16)


def test_capabilities(daemon: Daemon):
    assert effective_capabilities(daemon) == 0xA80425FB, "Docker's fourteen"
    assert effective_capabilities(daemon, "--cap-drop", "ALL") == 0
    assert effective_capabilities(daemon, "--cap-drop", "all", "--cap-add", "NET_BIND_SERVICE") == 1 << 10
    assert effective_capabilities(daemon, "--cap-add", "CAP_SYS_TIME") in (0xA80425FB | 1 << 25, 0xA80425FB)
    assert effective_capabilities(daemon, "--cap-drop", "CHOWN") == 0xA80425FB & ~1


def test_dropped_capability_is_gone(daemon: Daemon):
    done = daemon.docker("run", "--rm", "--cap-drop", "CHOWN", "busybox", "chown", "1", "/tmp", check=False)
    assert done.returncode == 1 and "not permitted" in done.stderr


def test_no_new_privileges(daemon: Daemon):
    option = ["--security-opt", "no-new-privileges"]
    assert sh(daemon, "grep NoNewPrivs /proc/self/status", *option).split()[1] == "1"


def test_privileged(daemon: Daemon):
    script = "mkdir /mnt; mount -t tmpfs x /mnt && echo mounted; grep Seccomp: /proc/self/status; "
    seen = sh(daemon, script + "test -w /proc/sys/kernel/hostname && echo w", "--privileged").split()
    assert seen == ["mounted", "Seccomp:", "0", "w"]
    assert effective_capabilities(daemon, "--privileged") > 0xA80425FB


DENIED = {
    "mount": "mkdir /m; mount -t tmpfs none /m",
    "bind mount": "mkdir /m; mount -o bind /etc /m",
    "remount": "mount -o remount,rw /sys",
    "unmount": "umount /proc/sys",
    "write a sysctl": "echo 1 > /proc/sys/kernel/panic",
    "write sysrq": "echo h > /proc/sysrq-trigger",
    "write sysfs": "echo 0 > /sys/kernel/profiling",
    "change a cgroup": "mkdir /sys/fs/cgroup/memory/x",
    "set the hostname": "hostname other",
    "set the clock": "date -s 2020-01-01 2>&1 | grep -v -e permitted -e 2020",
    "new namespaces": "unshare -m true",
    "new user namespace": "unshare -U true",
    "load a module": "insmod /bin/busybox",
    "raw disk": "mknod /tmp/disk b 8 0 && head -c1 /tmp/disk",
    "virtio disk": "mknod /tmp/disk b 254 0 && head -c1 /tmp/disk",
    "kernel memory": "mknod /tmp/mem c 1 1 && head -c1 /tmp/mem",
    "kmsg": "mknod /tmp/kmsg c 1 11 && head -c1 /tmp/kmsg",
    "fuse": "mknod /tmp/fuse c 10 229 && : < /tmp/fuse",
    "kernel log": "dmesg",
    "network interfaces": "ip link add d0 type dummy",
    "routes": "ip route add 192.0.2.0/24 dev lo",
    "swap": "dd if=/dev/zero of=/tmp/s bs=4k count=10 2>/dev/null; mkswap /tmp/s >/dev/null; swapon /tmp/s",
    "reboot": "reboot -f",
}


@pytest.fixture(scope="module")
def confined(module_daemon: Daemon) -> dict[str, tuple[int, str]]:
    """Everything a default container must not do, tried in one container: name -> (status, what was said)."""
    script = "\n".join(f"echo '>>> {name}'; ( {attempt} ) 2>&1; echo \"<<< $?\"" for name, attempt in DENIED.items())
    output = sh(module_daemon, script)
    found = re.findall(r">>> (.*)\n((?:.*\n)*?)<<< (\d+)\n", output)
    return {name: (int(status), said) for name, said, status in found}


@pytest.mark.parametrize("attempt", DENIED)
def test_a_default_container_must_not(confined: dict[str, tuple[int, str]], attempt: str):
    status, said = confined[attempt]
    assert status != 0, f"{attempt} was possible: {said}"
    assert "not found" not in said, f"the attempt itself is broken: {said}"


def test_masked_paths_tell_nothing(daemon: Daemon):
    files = "/proc/kcore /proc/keys /proc/timer_list /proc/interrupts"
    directories = "/proc/acpi /proc/scsi /sys/firmware"
    script = f"for f in {files}; do test -e $f && head -c 10 $f; done; ls {directories} 2>&1 | grep -v 'No such'"
    assert [line for line in sh(daemon, script).splitlines() if line and not line.endswith(":")] == []


def test_own_processes_only(daemon: Daemon):
    assert sh(daemon, "echo /proc/[0-9]*") == "/proc/1\n"
    assert int(sh(daemon, "ls -d /proc/[0-9]* | wc -l", "--pid", "host")) > 2


def test_devices(daemon: Daemon):
    assert sh(daemon, "ls /dev").split() == [
        "core", "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty",
        "urandom", "zero",
    ]  # fmt: skip
    assert sh(daemon, "echo x > /dev/null; head -c 4 /dev/zero | wc -c; head -c 4 /dev/urandom | wc -c") == "4\n4\n"


def test_the_host_shows_nothing_of_the_container_after_it_is_gone(daemon: Daemon):
    run(daemon, "busybox", "true")
    assert list((daemon.config.data_root / "containers").iterdir()) == []
    assert list((daemon.config.exec_root / "containers").iterdir()) == []


# --- network


def _address(daemon: Daemon, last: int) -> str:
    return f"{daemon.config.bip.rpartition('.')[0]}.{last}"


def test_none_network_has_loopback_alone(daemon: Daemon):
    assert sh(daemon, "ls /sys/class/net; ping -c1 -W1 127.0.0.1 > /dev/null && echo lo", "--net", "none") == "lo\nlo\n"


def test_host_network_is_the_hosts(daemon: Daemon):
    host = {path.name for path in Path("/sys/class/net").iterdir()}
    assert daemon.config.bridge_name in sh(daemon, "ls /sys/class/net", "--net", "host").split()
    assert sh(daemon, "hostname", "--net", "host").strip() == Path("/proc/sys/kernel/hostname").read_text().strip()
    assert daemon.config.bridge_name in host


def test_bridge_has_an_address_and_reaches_its_gateway(daemon: Daemon):
    script = f"ip -4 -o addr show dev eth0; ip route; ping -c1 -W2 {_address(daemon, 1)}"
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
    seen = sh(daemon, script + "ping -c1 -W1 127.0.0.1 | tail -1", "-u", "4242")
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
